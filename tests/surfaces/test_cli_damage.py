"""A damaged event by way of the command line and HTTP: found, named, gone past, repaired from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import threadline
from tests.surfaces.cli_stage import call, composed, store
from threadline.engine.engine import Engine
from threadline.kernel.store import FeedEntry, feed_pages
from threadline.settings import Settings
from threadline.stores.sqlite.store import SqliteStore
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.python.embedded import Threadline
from threadline.surfaces.python.exchange import Response, error_of

__all__ = ["call", "composed", "store"]


def _flat(told: Any) -> str:
    return " ".join((told.out + told.err).split())


def _damage(on: Engine) -> FeedEntry:
    """Another total in the purchase; the entry as it was."""
    was = next(each for each in feed_pages(on.store) if each.entry.type == "purchase_completed")
    assert on.store.mend(was, was.entry._replace(body=was.entry.body.replace(b"29.33", b"29.37")))
    return was


def _damage_file(path: Path) -> FeedEntry:
    with threadline.open(path) as tl:
        return _damage(tl.engine)


def test_a_changed_total_is_found_and_repaired_from_a_backup(store: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    copy = tmp_path / "copy.db"
    assert call("backup", str(copy)).code == 0
    was = _damage_file(store)
    found = call("verify")
    assert (found.code, "1 damaged event," in found.out) == (1, True)
    assert f"event {was.entry.id} (at position {was.cursor} of the log) is damaged" in _flat(found)
    assert "threadline repair --from" in _flat(found)
    refused = call("backup", str(tmp_path / "second.db"))
    assert (refused.code, (tmp_path / "second.db").exists()) == (1, False)
    assert f"1 damaged events; the first is {was.entry.id}" in _flat(refused)
    preview = call("repair", "--from", str(copy), "--dry-run")
    assert (preview.code, "1 damaged: 1 to be replaced" in _flat(preview)) == (0, True)
    assert call("verify").code == 1
    done = call("repair", "--from", str(copy))
    assert (done.code, "1 damaged: 1 replaced, 0 without a copy" in _flat(done)) == (0, True)
    assert call("verify").code == 0
    with threadline.open(store, readonly=True) as tl:
        assert [each for each in feed_pages(tl.engine.store) if each.cursor == was.cursor] == [was]


def test_a_damaged_backup_is_neither_restored_nor_a_source_of_copies(store: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    copy = tmp_path / "copy.db"
    assert call("backup", str(copy)).code == 0
    (tmp_path / "copy.db.sha256").unlink()
    was = _damage_file(copy)
    refused = call("restore", str(copy), "--replace")
    assert (refused.code, was.entry.id in _flat(refused)) == (1, True)
    _damage_file(store)
    told = call("repair", "--from", str(copy))
    assert (told.code, "1 damaged: 0 replaced, 1 without a copy" in _flat(told)) == (1, True)


def test_a_copy_is_taken_from_another_store_as_well(store: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert call("move", str(store), str(tmp_path / "moved.db")).code == 0
    _damage_file(store)
    refused = call("move", str(store), str(tmp_path / "again.db"))
    assert (refused.code, "is damaged" in _flat(refused)) == (1, True)
    assert call("repair", "--from", str(tmp_path / "moved.db")).code == 0
    assert call("verify").code == 0


def test_a_source_that_is_not_there_is_named(store: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("repair", "--from", str(tmp_path / "absent.db"))
    assert (told.code, "there is no backup or store at" in _flat(told)) == (1, True)


def test_the_doctor_and_the_probes_speak_of_a_damaged_event_that_was_met(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert "scrub none yet" in _flat(call("doctor"))
    was = _damage_file(store)
    with threadline.open(store) as tl, _server(tl) as client:
        assert client.get("/readyz").json() == {"status": "ok"}
        refused = client.get("/v1/feed")
        assert (refused.status_code, refused.json()["code"]) == (500, "store_damaged")
        assert was.entry.id in refused.json()["detail"]
        assert "skip_damaged=true" in refused.json()["hint"]
        passed = client.get("/v1/feed?skip_damaged=true").json()
        assert [each["id"] for each in passed["damaged"]] == [was.entry.id]
        assert client.get("/readyz").json() == {"status": "ok", "damaged_events": 1}
        metrics = client.get("/metrics").text
        assert "\nthreadline_damaged_events 1\n" in metrics
        assert "\nthreadline_scrub_completed_time_seconds 0\n" in metrics
        assert client.get("/v1/people/user_id:42").json()["damaged_events"] == [was.entry.id]
    told = call("doctor")
    assert (told.code, f"1 event damaged ({was.entry.id})" in _flat(told)) == (1, True)


def _server(tl: Threadline) -> TestClient:
    _, token = tl.engine.credentials.create("default", "token", "admin", ["admin"])
    client = TestClient(Application(tl.engine, Settings()), raise_server_exceptions=False)
    client.headers = httpx.Headers({"Authorization": f"Bearer {token}"})
    return client


@pytest.mark.parametrize("damage", ["id", "type", "thread"])
def test_a_damaged_column_of_the_file_is_repaired_with_its_index(
    damage: str, store: Path, call, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    copy = tmp_path / "copy.db"
    assert call("backup", str(copy)).code == 0
    opened = SqliteStore(store)
    db = opened._writer
    assert db is not None
    change = "type = 4000" if damage == "type" else f"{damage} = X'" + "ab" * 16 + "'"
    db.execute(f"UPDATE log SET {change} WHERE position = 1")
    opened.close()
    assert (call("verify").code, call("repair", "--from", str(copy)).code, call("verify").code) == (1, 0, 0)


def test_a_client_gets_the_error_of_a_damaged_event_as_damage_of_the_store(store: Path) -> None:
    was = _damage_file(store)
    with threadline.open(store) as tl, _server(tl) as web:
        answer = web.get(f"/v1/events/{was.entry.id}")
    with pytest.raises(threadline.StoreDamaged, match=was.entry.id):
        raise error_of(Response(answer.status_code, answer.headers, answer.content))
