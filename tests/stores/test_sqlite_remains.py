"""Nothing of what was erased, replaced or deleted is left in any file of an SQLite store once it is purged."""

from __future__ import annotations

import os
import re
import struct
import threading
from functools import partial
from pathlib import Path
from random import Random

import apsw
import pytest

from threadline.kernel.errors import StoreBusy
from threadline.kernel.store import Batch, Delete, Key, LogEntry, Put, Span, Store, feed_pages, scan_pages, thread_page
from threadline.stores import compression
from threadline.stores.sqlite import driver, free_space
from threadline.stores.sqlite.rows import Ask
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import at_once, entry, put, record

SEEDS = range(int(os.environ.get("THREADLINE_TEST_REMAINS", "2")))
"""Histories that are written and searched, about a second each."""
_MARKER = re.compile(rb"<mark \d+>")
_THREADS, _PEOPLE = 12, 80


class Writing:
    """Writes events and items full of markers, in many sizes, and knows which markers ought to be there."""

    def __init__(self, store: Store, random: Random) -> None:
        self.store, self.random = store, random
        self.count = 0
        self.events: dict[str, tuple[str, bytes]] = {}
        """Id -> thread and marker of each event that is not erased."""
        self.items: dict[Key, bytes] = {}

    @property
    def there(self) -> set[bytes]:
        return {marker for _, marker in self.events.values()} | set(self.items.values())

    def _filled(self, *sizes: int) -> tuple[bytes, bytes]:
        self.count += 1
        marker = b"<mark %d>" % self.count
        return marker, marker * (1 + self.random.choice(sizes) // len(marker))

    def write(self, commits: int) -> None:
        for _ in range(commits):
            events, writes = [], dict[Key, Put | Delete]()
            for _ in range(self.random.randint(0, 4)):
                marker, body = self._filled(10, 100, 300, 3_000, 9_000)
                id, thread = f"{self.random.getrandbits(128):032x}", f"{self.random.randint(1, _THREADS):032x}"
                self.events[id] = thread, marker
                type = marker.decode() if self.random.random() < 0.2 else "seen"
                events.append(LogEntry(thread, self.count, self.random.randint(0, 99), type, id, self.count, body))
            for _ in range(self.random.randint(1, 4)):
                key = Key("t", f"{self.random.randint(1, _PEOPLE)}" * self.random.choice((1, 20)))
                if key in self.items and self.random.random() < 0.25:
                    writes[key] = Delete(key)
                    del self.items[key]
                    continue
                self.items[key], value = self._filled(10, 100, 300, 900, 2_000, 6_000, 20_000)
                writes[key] = Put(key, value)
            assert self.store.commit([Batch(events, list(writes.values()))]) == [None]

    def erase(self) -> None:
        """All events of some threads, and some items."""
        gone = {f"{self.random.randint(1, _THREADS):032x}" for _ in range(3)}
        ids = [id for id, (thread, _) in self.events.items() if thread in gone]
        assert self.store.erase(ids) == len(ids)
        for id in ids:
            del self.events[id]


def remains(path: Path) -> set[bytes]:
    """The markers in the file of a store and in everything beside it."""
    return {found for file in path.parent.iterdir() for found in _MARKER.findall(file.read_bytes())}


def unused_bytes(path: Path) -> bytes:
    """What is on the pages of trees between their pointers and their rows, without zeros."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    pages = [number for number, kind in db.execute("SELECT pageno, pagetype FROM dbstat") if kind != "overflow"]
    size, content = db.pragma("page_size"), path.read_bytes()
    db.close()
    found = []
    for number in pages:
        page = content[(number - 1) * size : number * size]
        kind, _, cells, start, _ = struct.unpack_from(">BHHHB", page, 100 if number == 1 else 0)
        head = (100 if number == 1 else 0) + (8 if kind > 8 else 12)
        found.append(page[head + 2 * cells : start].replace(b"\0", b""))
    return b"".join(found)


def test_a_page_that_is_written_after_a_purge_has_no_old_bytes_from_memory(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    writing = Writing(store, Random(1))
    writing.write(100)
    assert store._writer is not None
    store._wal.empty(store._writer, 1_000)
    assert unused_bytes(path), "balancing has left some"
    store.purge()
    assert not unused_bytes(path)
    for item in list(scan_pages(store, "t")):
        put(store, item.key, item.value)  # in its place, as it has the same size
    store._wal.empty(store._writer, 1_000)
    assert not unused_bytes(path)
    store.close()


@pytest.mark.parametrize("compressed_from", [compression.BYTES_MIN, 1 << 60], ids=["as-written", "as-in-former-stores"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_file_has_anything_of_what_is_gone(
    tmp_path: Path, seed: int, compressed_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Compressed, the long values of these histories lie on no pages of their own.
    monkeypatch.setattr(compression, "BYTES_MIN", compressed_from)
    random = Random(seed)
    path = tmp_path / "store.db"
    store = SqliteStore(path, tail_entries_max=random.choice((16, 64, 1_000)), wal_pages_max=random.choice((50, 1_000)))
    writing, gone = Writing(store, random), set[bytes]()
    for _ in range(3):
        before = writing.there
        writing.write(60)
        assert not gone & remains(path), "what was overwritten came back from memory"
        writing.erase()
        store.purge()
        gone |= before - writing.there
        assert remains(path) == writing.there
        assert not unused_bytes(path)
    writing.write(20)
    store.close()
    assert gone
    assert not gone & remains(path)
    again = SqliteStore(path)
    assert again.integrity() == []
    bodies = [each.entry.body for each in feed_pages(again)] + [item.value for item in scan_pages(again, "t")]
    assert {marker for body in bodies for marker in _MARKER.findall(body)} == writing.there
    again.close()


def test_a_file_written_without_care_is_rebuilt_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    assert store._writer is not None
    store._writer.pragma("secure_delete", 0)
    writing = Writing(store, Random(9))
    writing.write(150)
    writing.erase()
    store._writer.execute("UPDATE remains SET possible = 1")
    store.close()
    assert remains(path) > writing.there
    store = SqliteStore(path)
    store.purge()
    assert remains(path) == writing.there
    monkeypatch.setattr(free_space, "REBUILT_IN_MEMORY_BYTES_MAX", -1)
    rebuilt = path.stat().st_ino, path.read_bytes()
    store.purge()
    assert (path.stat().st_ino, path.read_bytes()) == rebuilt
    assert store.integrity() == []
    store.close()


def test_a_store_of_layout_1_may_have_remains_and_a_new_one_has_none(tmp_path: Path) -> None:
    for name, layout, possible in (("new.db", 2, 0), ("old.db", 1, 1)):
        SqliteStore(tmp_path / name).close()
        db = apsw.Connection(str(tmp_path / name))
        if layout == 1:
            db.execute("DROP TABLE store_id; DROP TABLE remains; ALTER TABLE item DROP COLUMN crc")
            db.pragma("user_version", 1)
        db.close()
        (tmp_path / f"{name}-mark").unlink(missing_ok=True)
        store = SqliteStore(tmp_path / name)
        assert store._writer is not None
        assert store._writer.execute("SELECT possible FROM remains").get == possible
        store.purge()
        assert store._writer.execute("SELECT possible FROM remains").get == 0
        store.close()


def test_a_large_file_is_gone_through_in_parts_between_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_space, "PART_PAGES", 20)
    store = SqliteStore(tmp_path / "store.db")
    writing = Writing(store, Random(5))
    writing.write(150)
    writing.erase()
    others = [entry(number, body=b"other") for number in range(1, 60)]
    at_once(store.purge, partial(record, store, *others), lambda: [list(feed_pages(store)) for _ in range(5)])
    store.purge()
    assert remains(tmp_path / "store.db") == writing.there
    assert set(others) <= {each.entry for each in feed_pages(store)}
    assert store.integrity() == []
    store.close()


def test_a_purge_waits_for_readers_while_commits_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path, busy_timeout_seconds=0.05)
    record(store, entry(1))
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    with reader:
        assert reader.execute("SELECT count(*) FROM log").get == 1
        put(store, Key("t", "p"))
        with pytest.raises(StoreBusy):
            store.purge()
        record(store, entry(2))
        patient = threading.Thread(target=store.purge)
        monkeypatch.setattr(store, "_busy_timeout_ms", 60_000)
        patient.start()
        record(store, entry(3))
    patient.join(60)
    assert store.stats()["wal_bytes"] == 0
    assert len(store.feed()) == 3
    reader.close()
    store.close()


def test_the_file_read_past_sqlite_keeps_its_locks(tmp_path: Path) -> None:
    """A process that closed the file by other means would give up its locks on it; SQLite's own layer does not."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    record(store, entry(1))

    def locks() -> int:
        inode = f":{path.stat().st_ino} "
        return sum(inode in line and "POSIX" in line for line in Path("/proc/locks").read_text().splitlines())

    before = locks()
    file = driver.DatabaseFile(path)
    assert file.read(16, 0) == b"SQLite format 3\0"
    file.close()
    assert locks() == before > 0
    store.close()


# --- event types --------------------------------------------------------------------------------------


def typed(number: int, type: str) -> LogEntry:
    return entry(number)._replace(type=type)


def types_in(store: Store) -> list[str]:
    return [page.entry.type for page in feed_pages(store)]


def test_a_type_goes_with_its_last_event_also_if_a_process_before_erased_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    record(store, typed(1, "<mark 1>"), typed(2, "<mark 2>"), typed(3, "<mark 2>"), typed(4, "<mark 3>"))
    assert store.erase([entry(1).id, entry(2).id]) == 2
    store.close()
    store = SqliteStore(path)
    store.purge()
    assert remains(path) == {b"<mark 2>", b"<mark 3>"}
    assert store.erase([entry(4).id]) == 1
    store.purge()
    assert remains(path) == {b"<mark 2>"}
    assert types_in(store) == ["", "", "<mark 2>", ""]
    assert store.integrity() == []
    store.close()


def test_a_type_that_comes_again_is_read_by_whoever_knew_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    record(store, typed(1, "rare"), typed(2, "usual"))
    reader = SqliteStore(path, readonly=True)
    rare = Span(types=frozenset({"rare"}))
    for each in (store, reader):
        assert thread_page(each, entry(1).thread, rare) == [typed(1, "rare")]
    store.erase([entry(1).id])
    store.purge()
    for each in (store, reader):
        assert thread_page(each, entry(1).thread, rare) == []
    record(store, typed(3, "other"), typed(4, "rare"))
    for each in (store, reader):
        assert types_in(each) == ["", "usual", "other", "rare"]
        assert thread_page(each, entry(1).thread, rare) == [typed(4, "rare")]
    reader.close()
    store.close()


def test_a_type_that_comes_while_it_is_looked_for_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "store.db")
    record(store, typed(1, "rare"), typed(2, "usual"))
    types = store._log.types

    def meanwhile(ask: Ask) -> set[int]:
        found = types(ask)
        record(store, typed(3, "rare"))
        return found

    monkeypatch.setattr(store._log, "types", meanwhile)
    store.erase([entry(1).id])
    store.purge()
    assert types_in(store) == ["", "usual", "rare"]
    store.close()
    again = SqliteStore(tmp_path / "store.db")
    assert types_in(again) == ["", "usual", "rare"]
    again.close()


def test_an_entry_that_is_mended_while_its_type_is_looked_for_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    record(store, typed(1, "rare"), typed(2, "usual"), typed(3, "rare"))
    [_, _, third] = feed_pages(store)
    assert store.mend(third, third.entry._replace(type="usual"))
    types = store._log.types

    def meanwhile(ask: Ask) -> set[int]:
        found = types(ask)
        [*_, damaged] = feed_pages(store)
        assert store.mend(damaged, typed(3, "rare"))
        return found

    monkeypatch.setattr(store._log, "types", meanwhile)
    store.erase([entry(1).id])
    store.purge()
    assert types_in(store) == ["", "usual", "rare"]
    store.close()
