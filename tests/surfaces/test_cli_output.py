"""What commands show: no secret, and nothing that steers the terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import threadline
from tests import forked
from tests.surfaces.cli_stage import call, composed, store
from threadline.settings import PREFIX, describe

__all__ = ["call", "composed", "store"]


def test_a_sign_that_the_terminal_lacks_and_a_name_that_is_no_text_stop_nothing(store: Path) -> None:
    program = [sys.executable, "-m", "threadline"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*program, "settings"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2013" in done.stdout
    rows = os.fsencode(store.parent) + b"/rows-\xff.jsonl"
    with open(rows, "w") as file:
        file.write('{"who": "7", "when": "2025-01-01"}\n{"who": "7", "when": "soon"}\n')
    arguments = [b"--type", b"click", b"--time", b"when", b"--user-id", b"who"]
    done = subprocess.run(
        [*map(os.fsencode, program), b"import", rows, *arguments], env=os.environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"1 accepted" in done.stdout
    assert b"1 rejected" in done.stdout


SENTINEL = "c2VudGluZWwtc2VudGluZWw"
"""Part of every secret that the settings below have."""

FORMS = {"webhook_secrets": f"whsec_{SENTINEL}{9 * 'A'}", "opensearch": f"http://ada:{SENTINEL}@127.0.0.1:1"}
"""Secrets that have a form of their own; with another one no command begins."""
SECRET_SETTINGS = {
    each.name: FORMS.get(each.name, f"{SENTINEL}-of-{each.name}") for each in describe() if each.is_secret
}
COMMANDS_THAT_TELL = (
    ("settings",),
    ("settings", "--json"),
    ("catalogue", "--markdown"),
    ("doctor",),
    ("catalogue",),
    ("verify",),
    ("migrate",),
    ("backup", "/nowhere/b.db"),
    ("move", "x.db", "memory:"),
    ("person", "user_id:42"),
    ("people", "list"),
)


def test_the_settings_that_hold_secrets_are_declared_so() -> None:
    assert set(SECRET_SETTINGS) >= {"write_keys", "tokens", "jwt_secret", "webhook_secrets"}
    for each in describe():
        if each.name.endswith(("_secret", "_secrets", "_token", "_password")):
            assert each.is_secret, each.name


@pytest.mark.parametrize(
    "addresses",
    [
        {},
        {"store": f"postgresql://ada:{SENTINEL}/@%zz@127.0.0.1:1/d?password={SENTINEL}&sslpassword=@{SENTINEL}"},
        {"store": f"postgresql://ada:{SENTINEL}/x@127.0.0.1:1/d"},
        {"store": f"postgresql://127.0.0.1:1/d?password={SENTINEL}", "cache": f"redis://:{SENTINEL}@127.0.0.1:1/0"},
        {"store": f"postgresql://ada:{SENTINEL}%zz@127.0.0.1:1/d", "jwt_keys": f"https://ada:{SENTINEL}@127.0.0.1:1/k"},
        {"store": f"dynamodb://ada:{SENTINEL}@people"},
        {"cache": f"http://ada:{SENTINEL}@127.0.0.1:1/0"},
        {"port": "x"},
    ],
)
def test_no_command_shows_a_secret(  # type: ignore[no-untyped-def]
    addresses: dict[str, str], store: Path, call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: whatever is declared a secret, and whoever logs in by an address, stands in no output of any command."""
    for name, value in {**SECRET_SETTINGS, "retry_seconds": "0", **addresses}.items():
        monkeypatch.setenv(PREFIX + name.upper(), value)
    for arguments in COMMANDS_THAT_TELL:
        told = call(*arguments)
        assert told.out + told.err, arguments
        assert SENTINEL not in told.out + told.err, arguments
    if "port" not in addresses:
        shown = {each["setting"]: each["now"] for each in json.loads(call("settings", "--json").out)}
        assert [name for name, now in shown.items() if now == "(hidden)"] == [
            PREFIX + name.upper() for name in SECRET_SETTINGS
        ]


@pytest.mark.parametrize("command", ["serve", "work"])
def test_what_runs_on_shows_no_secret_either(command: str, store: Path) -> None:
    environment = os.environ | {PREFIX + name.upper(): value for name, value in SECRET_SETTINGS.items()}
    environment[f"{PREFIX}DRAIN_SECONDS"] = "0"
    program = [forked.threadline(), command, *(("--port", "0") if command == "serve" else ())]
    process = subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    assert process.stdout is not None
    said = ""
    while '"ready":true' not in said and (line := process.stdout.readline()):
        said += line  # a search index that waits for its cluster may say so before
    process.terminate()
    said += process.communicate(timeout=60)[0]
    assert '"ready":true' in said
    assert SENTINEL not in said


HOSTILE = "a\x1b[31mred\x07\x7f\x9b2J:x:[bold]"
"""What clears a screen, rings, and looks like markup of ours."""


def test_what_producers_send_does_not_steer_the_terminal(  # type: ignore[no-untyped-def]
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADLINE_STORE", str(tmp_path / "x.db"))
    with threadline.open(tmp_path / "x.db") as tl:
        tl.identify(HOSTILE, {"name": HOSTILE, HOSTILE: 1})
        tl.track(HOSTILE, "click", {HOSTILE: HOSTILE, "nested": {HOSTILE: [HOSTILE]}})
    rows = [{"who": HOSTILE, "when": "2025-01-01", "what": "click"}, {"who": "b", "when": HOSTILE, "what": HOSTILE}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "map.yaml").write_text("type: {column: what}\ntime: when\nuser_id: who\nproperties: '*'\n")
    imported = ("import", str(tmp_path / "rows.jsonl"), "--map", str(tmp_path / "map.yaml"))
    said = [
        call(*imported),
        call("person", f"user_id:{HOSTILE}"),
        *(call(group, "of", f"user_id:{HOSTILE}") for group in ("events", "features", "memory")),
        call("rejected", "list"),
        call("verify"),
        call("people", "list"),
        call("events", "feed"),
        call("person", f"user_id:{HOSTILE}x"),
        call(*imported, "--dry-run"),
        call("person", f"user_id:{HOSTILE}", "--json"),
    ]
    assert json.loads(said[-1].out)["identifiers"][0]["value"] == HOSTILE
    for told in said:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", told.out + told.err), told.out + told.err
    assert "a\\x1b[31mred\\x07\\x7f\\x9b2J:x:[bold]" in said[1].out
    assert "a\\x1b[31mred" in said[0].out


def test_messages_are_printed_as_they_are(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("person", "user_id:1", "--file", str(tmp_path / ":x: [red].db"))
    assert ":x: [red].db" in told.err
