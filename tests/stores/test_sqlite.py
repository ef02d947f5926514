"""SQLite as a store: the laws, one file under several processes, files that are not ours, readers beside the writer."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.stores.incompressible import noise
from tests.stores.sqlite_stage import FILE, python, store
from threadline.kernel.errors import InvalidSetting, StoreBusy, StoreDamaged, Unavailable
from threadline.kernel.store import Batch, Key, Span, Store, feed_pages, thread_page
from threadline.stores.sqlite import rows as sqlite_rows
from threadline.stores.sqlite.file import refuse_network
from threadline.stores.sqlite.store import PAGE_BYTES, SqliteStore
from threadline.testing.store_cases import at_once, entry, put, record
from threadline.testing.store_laws import StoreLaws

__all__ = ["store"]


class TestSqliteStore(StoreLaws):
    durable = True

    def open(self, folder: Path) -> Store:
        return SqliteStore(folder / FILE)


class TestSqliteStoreThatMovesItsIndexOften(StoreLaws):
    durable = True

    def open(self, folder: Path) -> Store:
        return SqliteStore(folder / FILE, tail_entries_max=6)


# --- one file, several processes -----------------------------------------------------------------

HOLD = """
import sys
from threadline.stores.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_refused_at_once_and_told_who_holds_the_file(tmp_path: Path) -> None:
    with python(HOLD, tmp_path / FILE, program=sys.executable) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        start = time.monotonic()
        with pytest.raises(StoreBusy, match=rf"pid {holder.pid}\b"):
            SqliteStore(tmp_path / FILE, busy_timeout_seconds=120)
        assert time.monotonic() - start < 60
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    store = SqliteStore(tmp_path / FILE)
    with pytest.raises(StoreBusy, match=rf"pid {os.getpid()}\b"):
        SqliteStore(tmp_path / FILE)
    record(store, entry(1))
    store.close()
    SqliteStore(tmp_path / FILE).close()


def test_a_second_writer_is_refused_under_whatever_name_it_knows_the_file(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "other.db").symlink_to(tmp_path / "there" / FILE)
    (tmp_path / "again.db").symlink_to(tmp_path / "other.db")
    names = [tmp_path / "there" / FILE, tmp_path / "link" / FILE, tmp_path / "other.db", tmp_path / "again.db"]
    for held in names:
        store = SqliteStore(held)
        record(store, entry(len(store.feed()) + 1))
        for name in names:
            with pytest.raises(StoreBusy, match=rf"pid {os.getpid()}\b"):
                SqliteStore(name)
        store.close()
    assert [each.name for each in tmp_path.rglob("*.lock")] == [f"{FILE}.lock"]


def test_a_file_with_two_names_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, entry(1))
    (tmp_path / "second.db").hardlink_to(tmp_path / FILE)
    for readonly in (False, True):
        with pytest.raises(InvalidSetting, match="has 2 names"):
            SqliteStore(tmp_path / "second.db", readonly=readonly)
    (tmp_path / "second.db").unlink()
    store.close()
    SqliteStore(tmp_path / FILE).close()


def test_a_place_in_the_log_that_was_taken_meanwhile_is_no_damage(store: SqliteStore) -> None:
    record(store, entry(1))
    other = apsw.Connection(str(store.path))
    # A second writer that the lock could not keep out, as on a file system whose locks are no locks.
    others = "position, " + ", ".join(
        str(row[1]) for row in other.execute("PRAGMA table_info(log)") if row[1] not in ("position", "id")
    )
    values = others.replace("position", "2")
    other.execute(f"INSERT INTO log (id, {others}) SELECT randomblob(8), {values} FROM log WHERE position = 1")
    with pytest.raises(StoreBusy, match="written to by another process"):
        record(store, entry(2))
    other.execute("DELETE FROM log WHERE position = 2")
    other.close()
    record(store, entry(2))
    assert [page.entry for page in store.feed()] == [entry(1), entry(2)]


def test_a_reader_beside_a_writer_sees_every_commit_and_writes_nothing(store: SqliteStore) -> None:
    reader = SqliteStore(store.path, readonly=True)
    for number in range(1, 6):
        record(store, entry(number, type=f"type{number}"))
        put(store, Key("t", f"p{number}"))
        assert [page.entry for page in reader.feed()] == [entry(n, type=f"type{n}") for n in range(1, number + 1)]
        assert reader.get([Key("t", f"p{number}")]) == store.get([Key("t", f"p{number}")]) != [None]
    with pytest.raises(Unavailable, match="reading only"):
        reader.commit([Batch([entry(9)])])
    reader.close()
    assert len(store.feed()) == 5


def test_a_foreign_lock_on_the_file_is_told_as_busy(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE, busy_timeout_seconds=0.05)
    other = apsw.Connection(str(store.path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        record(store, entry(1))
    other.execute("ROLLBACK")
    record(store, entry(1))
    store.close()


# --- files that are not ours -----------------------------------------------------------------------


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    with apsw.Connection(str(tmp_path / FILE)) as other:
        other.execute("CREATE TABLE precious (value); INSERT INTO precious VALUES (1)")
    other.close()
    before = (tmp_path / FILE).read_bytes()
    for readonly in (False, True):
        with pytest.raises(InvalidSetting, match="something else"):
            SqliteStore(tmp_path / FILE, readonly=readonly)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_newer_layout_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / FILE).close()
    db = apsw.Connection(str(tmp_path / FILE))
    db.pragma("user_version", 99)
    db.close()
    with pytest.raises(InvalidSetting, match="newer"):
        SqliteStore(tmp_path / FILE)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"name,mail\n" * 500)
    with pytest.raises(StoreDamaged):
        SqliteStore(tmp_path / FILE)
    with pytest.raises(InvalidSetting, match="no store"):
        SqliteStore(tmp_path / "absent", readonly=True)
    with pytest.raises(InvalidSetting, match="no such folder"):
        SqliteStore(tmp_path / "absent" / FILE)


def test_damage_is_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, *[entry(number, body=noise(number, 2_000)) for number in range(1, 60)])
    assert store.integrity() == []
    store.close()
    content = bytearray((tmp_path / FILE).read_bytes())
    for page in range(3, len(content) // PAGE_BYTES):
        content[page * PAGE_BYTES : page * PAGE_BYTES + 64] = bytes(64)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StoreDamaged):
        SqliteStore(tmp_path / FILE)
    store = SqliteStore(tmp_path / FILE, readonly=True)
    assert store.integrity() != []
    with pytest.raises(StoreDamaged):
        list(feed_pages(store))
    store.close()


def test_each_fault_that_sqlite_tells_is_one() -> None:
    told = "*** in database main ***\nTree 4 page 4: btreeInitPage() returns error code 11\nPage 10: never used"
    found = sqlite_rows.faults(lambda sql, values: [(told,), ("Page 11: never used",)])
    assert found == [
        "Tree 4 page 4: btreeInitPage() returns error code 11",
        "Page 10: never used",
        "Page 11: never used",
    ]
    assert sqlite_rows.faults(lambda sql, values: [("ok",)]) == []


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM event_id WHERE position = 7",
        "DELETE FROM place WHERE position = 7",
        "UPDATE event_id SET position = 8 WHERE position = 7",
        "DELETE FROM log WHERE position = 7",
    ],
)
def test_an_index_that_disagrees_with_the_log_is_found(tmp_path: Path, harm: str) -> None:
    store = SqliteStore(tmp_path / FILE)
    record(store, *[entry(number) for number in range(1, 20)])
    store.close()
    store = SqliteStore(tmp_path / FILE)
    assert store.integrity() == []
    other = apsw.Connection(str(store.path))
    other.execute(harm)
    other.close()
    assert store.integrity() != []
    store.close()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_network_file_systems_are_refused(kind: str) -> None:
    share = "/mnt/team\\040share"
    mounts = f"/dev/vda / ext4 rw 0 0\nserver:/x {share} {kind} rw 0 0\ntmpfs {share}/local tmpfs rw 0 0\n"
    with pytest.raises(InvalidSetting, match=kind):
        refuse_network(Path("/mnt/team share/people.db"), mounts)
    refuse_network(Path("/mnt/team share/local/people.db"), mounts)
    refuse_network(Path("/mnt/team sharec/people.db"), mounts)


# --- the index that is filled later ----------------------------------------------------------------------


@pytest.mark.parametrize("readonly", [False, True])
def test_readers_see_every_commit_while_the_index_moves(tmp_path: Path, readonly: bool) -> None:
    store = SqliteStore(tmp_path / FILE, tail_entries_max=8)
    record(store, entry(1, at=-1))
    reader = SqliteStore(tmp_path / FILE, readonly=True, tail_entries_max=8) if readonly else store
    done = threading.Event()
    counts: list[int] = []

    def write() -> None:
        try:
            for first in range(2, 902, 3):
                seen = len(counts)
                record(store, *[entry(number, at=-number, thread="aa" * 16) for number in range(first, first + 3)])
                while first % 90 == 2 and len(counts) < seen + 3 and not done.is_set():
                    time.sleep(0.001)  # who reads comes round, however fast who writes is
        finally:
            done.set()

    def read() -> None:
        try:
            while not done.is_set():
                look()
        finally:
            done.set()

    def look() -> None:
        # Each question is asked after the answer to the one before, so each must see at least as much.
        known = reader.stats()["log_entries"]
        events = thread_page(reader, "aa" * 16, Span(limit=1_000))
        assert [one.sequence for one in events] == list(range(len(events), 0, -1))
        assert len(events) >= known
        ids = [f"{number:032x}" for number in range(1, len(events) + 1)]
        assert reader.seen(ids) == {one.id: one.digest for one in events}
        assert len(reader.find(ids)) == len(events)
        newest = thread_page(reader, "aa" * 16, Span(limit=2))
        assert newest[0].sequence >= len(events)
        counts.append(len(events))

    at_once(write, read, read)
    assert len(set(counts)) > 5
    assert len(thread_page(reader, "aa" * 16)) == 901
    assert store.stats()["indexed_entries"] > 800
    assert len(reader._log._tail.view().generations) < 10
    if readonly:
        reader.close()
    store.close()
    assert SqliteStore(tmp_path / FILE, readonly=True).stats()["indexed_entries"] == 901


def test_an_interrupted_commit_is_caught_up_with(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("threadline.stores.sqlite.log.EventLog.published", interrupt)
        with pytest.raises(KeyboardInterrupt):
            record(store, entry(1), entry(2))
    assert [page.entry for page in store.feed()] == thread_page(store, "aa" * 16) == [entry(1), entry(2)]
    assert store.commit([Batch([entry(2)]), Batch([entry(3)])])[0] == ("event_exists", entry(2).id)
    assert [one.sequence for one in thread_page(store, "aa" * 16)] == [1, 2, 3]


# --- many threads, many names ---------------------------------------------------------------------------


def test_readers_in_many_threads_share_few_connections(store: SqliteStore) -> None:
    record(store, *[entry(number) for number in range(1, 50)])
    errors: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(30):
                assert len(store.feed()) == 49
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=read) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    # Each connection has three files open. There were at most as many as threads, and 720 reads; SQLite itself puts off
    # closing a file as long as another connection of the process holds a lock on it.
    assert 3 <= open_files(store.path) <= 3 * (24 + 2)


def open_files(path: Path) -> int:
    """How many files of this process begin with a path."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile, by whoever else is in this process
            found += os.readlink(f"/proc/self/fd/{number}").startswith(str(path))
    return found


def test_a_read_that_stops_half_way_in_another_thread_holds_up_no_commit(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Key("t", "p")
    put(store, key, b"1")
    writer, reading, going_on, items = threading.get_ident(), threading.Event(), threading.Event(), sqlite_rows.items

    def stopping(*arguments: Any) -> Any:
        if threading.get_ident() != writer:
            reading.set()
            assert going_on.wait(60)
        return items(*arguments)

    monkeypatch.setattr(sqlite_rows, "items", stopping)
    with ThreadPoolExecutor(2) as others:
        read = others.submit(store.get, [key])
        assert reading.wait(60)
        others.submit(put, store, key, b"2").result(60)
        going_on.set()
        assert [item.value for item in read.result(60) if item is not None] == [b"2"]


def test_more_event_types_than_are_cached_are_all_kept(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.stores.sqlite.names.CACHED_MAX", 10)
    entries = [entry(number, type=f"type{number % 35}") for number in range(1, 71)]
    record(store, *entries)
    store.commit([Batch(entries[:0]), *[Batch([one._replace(id=f"{n:032x}")]) for n, one in enumerate(entries, 500)]])
    assert [page.entry.type for page in store.feed()] == [one.type for one in entries] * 2
    assert [one.sequence for one in thread_page(store, "aa" * 16) if one.type == "type7"] == [7, 7, 42, 42]


def test_table_that_was_asked_for_before_anything_was_in_it_is_read_by_every_thread_once_it_is_written(
    tmp_path: Path,
) -> None:
    with closing(SqliteStore(tmp_path / FILE)) as store:
        for number in range(200):
            table = f"table {number}"
            asking = threading.Thread(target=lambda table=table: [store.query(table, "p") for _ in range(5)])
            assert store.query(table, "p") == []
            asking.start()
            put(store, Key(table, "p"), b"value")
            asking.join()
            assert [item.value for item in store.query(table, "p")] == [b"value"]
