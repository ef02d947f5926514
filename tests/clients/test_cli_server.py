"""The command line asks a server: the same commands, answers, errors and exit codes as on a store."""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

import threadline
from tests.clients.server import Server
from threadline.app import composition
from threadline.surfaces.cli.program import run

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(composition, arguments)
        return (code, *capfd.readouterr())

    return call


@pytest.fixture
def on_server(call: Call, server: Server, monkeypatch: pytest.MonkeyPatch) -> Call:
    return asking(call, server, monkeypatch)


@pytest.fixture
def on_empty_server(
    call: Call, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Call]:
    """The shared server lists the event types that other tests recorded; this one has those of its own test only."""
    server = Server(tmp_path_factory.mktemp("empty") / "threadline.db")
    server.start()
    yield asking(call, server, monkeypatch)
    server.stop()


def asking(call: Call, server: Server, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("THREADLINE_TOKEN", server.token)
    return lambda *arguments: call(*arguments, "--url", server.url)


def order(who: str) -> str:
    event = {"type": "purchase_completed", "key": who, "identifiers": {"user_id": who}, "occurred_at": "2026-03-01"}
    return json.dumps([{**event, "properties": {"total": 29.33, "currency": "EUR"}}, {"type": 7}, 7])


def test_commands_answer_on_a_server_what_they_answer_on_a_store(call: Call, on_empty_server: Call) -> None:
    who = f"cli-{secrets.token_hex(4)}"
    for name, on in (("server", on_empty_server), ("store", lambda *arguments: call(*arguments, "--file", "x.db"))):
        found: dict[str, Any] = {}
        for command in (
            ("record", "--events", order(who)),
            ("record", "--events", order(who)),
            ("people", "tag", who, "--add", "vip"),
            ("people", "tag", who, "--add", "vip", "--add", "early", "--json"),
            ("features", "of", who, "--names", "monetary_total"),
            ("events", "of", who, "--type", "purchase_completed", "--start", "2026-01-01", "--order", "asc"),
            ("points", "spend", who, "--points", "5000000", "--request", "r", "--json"),
            ("people", "list", "--identifier", who, "--json"),
            ("features", "top", "no_such"),
            ("person", "nobody", "--json"),
            ("features", "list", "--json"),
            ("catalogue", "--json"),
        ):
            code, out, err = on(*command)
            found[" ".join(command)] = (code, without_what_is_drawn(out), err)
        if name == "server":
            first = found
        else:
            assert found == first
    assert [code for code, _, _ in found.values()].count(1) == 3


def without_what_is_drawn(out: str) -> str:
    """An answer without the ids and instants that each store has of its own."""
    return re.sub(r"[0-9a-f]{20,}|[0-9a-f]{8,}…|\d{4}-\d\d-\d\d[T ][\d:.]+Z?", "*", out)


def test_a_what_if_and_a_rule_are_tried_on_the_server(on_server: Call, tmp_path: Path) -> None:
    rule = {"conditions": {"field": "event.properties.total", "greater_than": 20}}
    (tmp_path / "big.json").write_text(json.dumps(rule))
    for version in (1, 2):
        rule["conditions"]["greater_than"] = 20 * version
        code, out, _ = on_server("rules", "write", "big", "--rule", json.dumps(rule), "--json")
        assert (code, json.loads(out)["version"]) == (0, version)
    assert on_server("rule-sets", "write", "orders", "--events", "purchase_completed", "--rules", "big")[0] == 0
    assert on_server("record", "--events", order("what-if"))[0] == 0
    code, out, err = on_server("rules", "diff", "big:v1", "big:v2", "--types", "purchase_completed", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["state"] == "done"
    assert json.loads(out)["changed"] >= 1
    assert on_server("what-if", "run", "--rule", "big", "--version", "9")[0] == 1
    assert on_server("what-if", "run", "--rule", "big", "--version", "2", "--checkpoint", "c")[0] == 2


def test_which_server_and_by_what_right(call: Call, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADLINE_URL", server.url)
    code, out, err = call("keys", "list", "--json")
    assert (code, out, json.loads(err)["code"]) == (1, "", "unauthorized")
    passwords = {("threadline", server.url): server.token}
    keyring = SimpleNamespace(get_password=lambda *names: passwords.get(names), __spec__=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    assert call("keys", "list")[0] == 0
    # A store that is named is opened, whatever the environment says.
    code, _, err = call("keys", "list", "--file", "none.db")
    assert (code, "there is no store at none.db" in err) == (1, True)
    assert call("settings")[0] == 0


def test_a_store_in_use_says_how_to_ask_the_server(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADLINE_PORT", "9123")
    with threadline.open("x.db") as shop:
        shop.track("ada", "click")
        code, _, err = call("people", "tag", "ada", "--add", "vip", "--file", "x.db")
    assert code == 1
    assert "open for writing in another process (pid" in err
    assert "add --url http://127.0.0.1:9123" in err


def test_an_export_streams_from_a_server_into_a_file_and_its_errors_are_those_of_a_store(
    on_server: Call, tmp_path: Path
) -> None:
    who = f"cli-{secrets.token_hex(4)}"
    on_server("record", "--events", order(who))
    code, _, err = on_server("people", "export", who, "out.zip")
    assert (code, err) == (0, "")
    with ZipFile(tmp_path / "out.zip") as zipped:
        assert json.loads(zipped.read("manifest.json"))["person"]["identifiers"] == [f"user_id:{who}"]
    code, _, err = on_server("people", "export", "nobody/at/all", "other.zip")
    assert (code, "nobody is known as 'nobody/at/all'" in err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["out.zip"]
