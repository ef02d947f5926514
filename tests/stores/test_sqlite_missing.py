"""A store whose file, log or lock goes away while it is in use: nothing more is acknowledged, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.clients.server import Server, wait_until
from tests.stores.incompressible import noise
from tests.stores.sqlite_stage import FILE, store
from threadline.kernel.errors import StoreMissing
from threadline.kernel.store import feed_pages
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import entry, record

__all__ = ["store"]


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


@pytest.fixture(autouse=True)
def _each_commit_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.stores.sqlite.acknowledged.FRESH_SECONDS", 0)


def remove(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(beside(path, ".moved"))


def replace(path: Path) -> None:
    shutil.copy(path, beside(path, ".copy"))
    beside(path, ".copy").rename(path)


def sequences(path: Path) -> list[int]:
    """The events of a store, opened by itself."""
    opened = SqliteStore(path)
    found = [page.entry.sequence for page in feed_pages(opened)]
    assert opened.integrity() == []
    opened.close()
    return found


@pytest.mark.parametrize("ending", ["", "-wal"])
@pytest.mark.parametrize("harm", [remove, rename, replace])
def test_the_commit_after_the_file_or_its_log_goes_is_refused(
    store: SqliteStore, ending: str, harm: Callable[[Path], None]
) -> None:
    record(store, entry(1), entry(2))
    harm(beside(store.path, ending))
    for number in (3, 4):
        with pytest.raises(StoreMissing, match=FILE + ending):
            record(store, entry(number))
    with pytest.raises(StoreMissing):
        store.feed()
    assert store._log.last == 2  # nothing of what was refused is written


@pytest.mark.parametrize("ending", ["-shm", ".lock"])
def test_reads_and_writes_are_refused_soon_after_the_index_or_the_lock_goes(store: SqliteStore, ending: str) -> None:
    record(store, entry(1))
    beside(store.path, ending).unlink()
    wait_until(lambda: is_refused(store), f"{ending} is missed")
    with pytest.raises(StoreMissing):
        record(store, entry(2))


def is_refused(store: SqliteStore) -> bool:
    try:
        store.feed()
    except StoreMissing:
        return True
    return False


def test_a_removed_file_is_rescued_with_all_that_was_acknowledged(store: SqliteStore) -> None:
    record(store, *[entry(number, body=noise(number, 900)) for number in range(1, 400)])
    store.path.unlink()
    copy = beside(store.path, ".rescued-1")
    wait_until(lambda: is_refused(store), "the file is missed")
    store.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    copy.rename(store.path)
    assert sequences(store.path) == list(range(1, 400))


@pytest.mark.parametrize("harm", [rename, replace])
def test_a_file_under_another_name_has_all_that_was_acknowledged(
    store: SqliteStore, harm: Callable[[Path], None]
) -> None:
    record(store, entry(1), entry(2))
    harm(store.path)
    wait_until(lambda: is_refused(store), "the file is missed")
    store.close()
    assert sequences(beside(store.path, ".moved" if harm is rename else ".rescued-1")) == [1, 2]


def test_a_removed_log_loses_nothing(store: SqliteStore) -> None:
    record(store, entry(1), entry(2))
    beside(store.path, "-wal").unlink()
    wait_until(lambda: is_refused(store), "the log is missed")
    store.close()
    assert sequences(store.path) == [1, 2]


def test_a_file_that_comes_back_is_the_store_again(store: SqliteStore) -> None:
    record(store, entry(1))
    moved = store.path.rename(beside(store.path, ".moved"))
    wait_until(lambda: is_refused(store), "the file is missed")
    moved.rename(store.path)
    wait_until(lambda: not is_refused(store), "the file is found")
    record(store, entry(2))
    assert [page.entry.sequence for page in store.feed()] == [1, 2]


# --- over HTTP -----------------------------------------------------------------------------------------


def send(server: Server, key: str) -> httpx.Response:
    event = {"type": "track", "userId": "ada", "event": "seen", "messageId": key}
    return httpx.post(f"{server.url}/v1/track", json=event, auth=(server.write_key, ""), timeout=30)


def test_a_server_answers_503_while_its_file_is_elsewhere_and_all_that_it_accepted_is_rescued(tmp_path: Path) -> None:
    server = Server(tmp_path / FILE)
    server.start()
    accepted = []
    for number in range(20):
        assert send(server, f"k{number}").status_code == 200
        accepted.append(f"k{number}")
    moved = server.file.rename(tmp_path / "moved")
    refused = send(server, "refused")
    assert refused.status_code == 503, refused.text
    assert "store_missing" in refused.text
    assert "Retry-After" in refused.headers
    wait_until(lambda: server.get("/readyz").status_code == 503, "readiness is off")
    wait_until(lambda: server.get("/v1/people/user_id:ada").status_code == 503, "reads are refused")
    assert "was removed, renamed or replaced" in server.log()
    moved.rename(server.file)
    wait_until(lambda: send(server, "again").status_code == 200, "writes are accepted again")
    accepted.append("again")
    server.file.unlink()
    while (answer := send(server, f"k{len(accepted)}")).status_code == 200:
        accepted.append(f"k{len(accepted)}")
    assert answer.status_code == 503
    wait_until((tmp_path / f"{FILE}.rescued-1").exists, "the file is rescued")
    server.kill()
    (tmp_path / f"{FILE}.rescued-1").rename(server.file)
    server.start()
    assert [event["key"] for event in server.events("user_id:ada")] == accepted
    server.stop()
