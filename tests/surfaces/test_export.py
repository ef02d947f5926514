"""The archive of a person over HTTP and on the command line: who gets it, where it goes, how a browser shows it."""

from __future__ import annotations

import base64
import io
import json
import stat
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from starlette.testclient import TestClient

from tests.chromium import launched
from tests.surfaces.cli_stage import call, composed, store
from tests.surfaces.conftest import NOW, Keys
from tests.surfaces.operations_stage import PROBLEM, record
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import LimitExceeded, StoreDamaged
from threadline.kernel.event import Event, Identifier

__all__ = ["call", "composed", "store"]

PATH = "/v1/people/user_id:1/export"


def files(data: bytes) -> dict[str, bytes]:
    with ZipFile(io.BytesIO(data)) as zipped:
        assert zipped.testzip() is None
        return {name: zipped.read(name) for name in zipped.namelist()}


# --- over HTTP --------------------------------------------------------------------------------


def test_the_archive_streams_to_an_admin(engine: Engine, client: TestClient, keys: Keys) -> None:
    record(engine, colour="blue")
    answer = client.get(PATH, headers=keys.bearer("admin"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    assert answer.headers["content-disposition"] == 'attachment; filename="people_export.zip"'
    assert answer.headers["cache-control"] == "no-store"
    found = files(answer.content)
    [event] = [json.loads(line) for line in found["events.jsonl"].splitlines()]
    assert event["properties"] == {"colour": "blue"}
    assert json.loads(found["manifest.json"])["position"]["events"] == 1


@pytest.mark.parametrize(
    ("key", "path", "status", "code"),
    [
        ("read", PATH, 403, "forbidden"),
        ("stranger", PATH, 404, "not_found"),
        ("admin", "/v1/people/user_id:2/export", 404, "not_found"),
        ("admin", f"{PATH}?format=csv", 400, "invalid_value"),
    ],
)
def test_whoever_may_not_have_it_gets_a_problem(
    engine: Engine, client: TestClient, keys: Keys, key: str, path: str, status: int, code: str
) -> None:
    record(engine)
    answer = client.get(path, headers=keys.bearer(key))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == PROBLEM


def test_the_message_that_came_is_in_it_as_it_came(engine: Engine, client: TestClient, keys: Keys) -> None:
    message = {
        "type": "track",
        "event": "Order Completed",
        "userId": "1",
        "messageId": "m-1",
        "anonymousId": "phone",
        "timestamp": "2026-03-01T11:00:00.000Z",
        "properties": {"total": 29.33},
        "context": {"ip": "192.0.2.1"},
    }
    basic = base64.b64encode(f"{keys.write}:".encode()).decode()
    sent = client.post("/v1/batch", json={"batch": [message]}, headers={"authorization": f"Basic {basic}"})
    assert sent.status_code == 200
    found = files(client.get(PATH, headers=keys.bearer("admin")).content)
    [event] = [each for each in map(json.loads, found["events.jsonl"].splitlines()) if each["payload"] is not None]
    assert message.items() <= event["payload"].items()


def test_a_rejected_message_is_in_the_archive_of_whom_it_names(engine: Engine, client: TestClient, keys: Keys) -> None:
    record(engine)
    record(engine, user="2", key="k2")
    basic = base64.b64encode(f"{keys.write}:".encode()).decode()
    wrong = {"type": "track", "event": 7, "messageId": "m", "properties": {"note": "for-one"}, "userId": "1"}
    other = {**wrong, "messageId": "n", "properties": {"note": "for-two", "total": 1}, "userId": "2"}
    client.post("/v1/batch", json={"batch": [wrong, other]}, headers={"authorization": f"Basic {basic}"})
    found = files(client.get(PATH, headers=keys.bearer("admin")).content)
    assert b"for-one" in found["rejected.jsonl"]
    assert b"for-two" not in b"".join(found.values())


def test_an_archive_that_breaks_off_is_no_archive(
    engine: Engine, client: TestClient, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        record(engine, key=f"k{number}", text=f"{number}" + "x\u0131" * 6_000)
    read = engine.reader.all_events

    def breaking(*given: Any, **named: Any) -> Any:
        for number, each in enumerate(read(*given, **named)):
            if number == 30:
                raise StoreDamaged("an event cannot be read")
            yield each

    monkeypatch.setattr(engine.reader, "all_events", breaking)
    data = client.get(PATH, headers=keys.bearer("admin")).content
    assert not data.startswith(b"PK") or b"PK\x05\x06" not in data[-22:]


def test_the_archive_of_many_large_events_is_flat_in_memory(
    engine: Engine, record_property: Callable[[str, object], None]
) -> None:
    events, size = 1_500, 8_000
    for first in range(0, events, 500):
        engine.recorder.record(
            Event(
                type="page",
                identifiers=(Identifier("user_id", "1"),),
                occurred_at=NOW - number - 1,
                key=f"{number}",
                properties={"text": f"{number:08d}" * (size // 8)},
            )
            for number in range(first, first + 500)
        )
    operation = engine.catalogue.operation("people_export")
    tracemalloc.start()
    pieces = operation.run(Context(engine, "default", NOW), operation.params(id="1"))
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    sizes = [len(piece) for piece in pieces]
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    record_property("peak", peak)
    assert peak < events * size * 0.5
    assert max(sizes) < 4 * 64 * 1_024


def test_a_file_beyond_its_limit_ends_the_export_with_an_error(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    record(engine, text="x" * 1_000)
    monkeypatch.setattr("threadline.capabilities.ask.export.archive.EXPORT_FILE_BYTES_MAX", 1_000)
    operation = engine.catalogue.operation("people_export")
    with pytest.raises(LimitExceeded, match="larger than 1,000 bytes"):
        list(operation.run(Context(engine, "default", NOW), operation.params(id="1")))


# --- on the command line ----------------------------------------------------------------------


def test_the_file_is_of_its_owner_alone_and_replaces_none(store: Path, tmp_path: Path, call: Any) -> None:
    into = tmp_path / "out.zip"
    done = call("people", "export", "42", str(into))
    assert (done.code, done.err) == (0, "")
    assert stat.S_IMODE(into.stat().st_mode) == 0o600
    found = into.read_bytes()
    assert json.loads(files(found)["manifest.json"])["person"]["identifiers"] == ["user_id:42"]
    again = call("people", "export", "42", str(into))
    assert (again.code, "is there already" in again.err) == (1, True)
    assert into.read_bytes() == found
    assert [path.name for path in tmp_path.iterdir() if "out.zip" in path.name] == ["out.zip"]


@pytest.mark.parametrize(
    ("person", "into", "says"),
    [("nobody", "out.zip", "nobody is known as 'nobody'"), ("42", "no/such/folder/out.zip", "cannot be written")],
)
def test_what_fails_leaves_no_file(store: Path, tmp_path: Path, call: Any, person: str, into: str, says: str) -> None:
    done = call("people", "export", person, str(tmp_path / into))
    assert (done.code, says in done.err) == (1, True)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("x.db")] == []


def test_a_file_system_without_links_takes_an_archive(
    store: Path, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(one: Path, other: Path) -> None:
        raise PermissionError("no links")

    monkeypatch.setattr("os.link", link)
    assert call("people", "export", "42", str(tmp_path / "out.zip")).code == 0
    assert "manifest.json" in files((tmp_path / "out.zip").read_bytes())


def test_an_export_that_was_stopped_is_said(store: Path, tmp_path: Path, call: Any) -> None:
    (tmp_path / "out.zip.partial").touch()
    done = call("people", "export", "42", str(tmp_path / "out.zip"))
    assert (done.code, "out.zip.partial is there already" in done.err) == (1, True)


# --- the page ---------------------------------------------------------------------------------

HOSTILE = {
    "name": "<script>document.title = 'ran'</script><img src=x onerror=\"document.title='ran'\">",
    "arabic": "\u0645\u0631\u062d\u0628\u0627 \u202eevil",
    "long": "x" * 5_000,
    "multi": "one\ntwo",
    "deep": {"a": {"b": {"c": {"d": [1, [2, {"e": "</dl></section>"}]]}}}},
}


@pytest.mark.browser
def test_the_page_shows_what_is_hostile_as_text_and_fits_a_phone(engine: Engine, tmp_path: Path) -> None:
    for number in range(130):
        record(engine, key=f"k{number}", number=number)
    traits = Event(
        type="identify", identifiers=(Identifier("user_id", "1"),), occurred_at=NOW - 1, key="t", properties=HOSTILE
    )
    engine.recorder.record([traits])
    operation = engine.catalogue.operation("people_export")
    data = b"".join(operation.run(Context(engine, "default", NOW), operation.params(id="1")))
    (tmp_path / "index.html").write_bytes(files(data)["index.html"])
    requests: list[str] = []
    with launched() as browser:
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 375, "height": 800}, color_scheme=scheme)
            page.on("request", lambda request: requests.append(request.url))
            page.goto((tmp_path / "index.html").as_uri())
            assert page.title() == "Your data"
            assert page.evaluate("document.documentElement.scrollWidth") == 375
            assert page.evaluate("document.scripts.length + document.images.length") == 0
            assert page.locator("#profile").inner_text().count("<script>") == 1
            assert "The last 100 of 131" in page.locator("#events").inner_text()
            assert page.locator("body > main > section").count() == page.locator("nav li").count()
            page.close()
    assert len(requests) == 2
