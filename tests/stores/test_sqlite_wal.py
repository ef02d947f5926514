"""SQLite's write-ahead log: it stays short, and keeps what was acknowledged through `kill -9`."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.stores.incompressible import noise
from tests.stores.sqlite_stage import FILE, python
from threadline.kernel.store import Batch, Key, event_pages, feed_pages
from threadline.stores.sqlite.store import PAGE_BYTES, SqliteStore
from threadline.stores.sqlite.wal import WAL_GROWTH_MAX, WriteAheadLog
from threadline.testing.store_cases import entry, record

KILLS = int(os.environ.get("THREADLINE_TEST_KILLS", "20")) * 2 // 5


def writing(store: SqliteStore, first: int, stop: Callable[[], bool]) -> int:
    """Commit full batches without a pause; gives the number after the last."""
    while not stop():
        assert store.commit([Batch([entry(first + n, body=noise(n, 900)) for n in range(50)])]) == [None]
        first += 50
    return first


def test_the_write_ahead_log_stays_bounded_under_continuous_writes(tmp_path: Path) -> None:
    pages_max = 200
    store = SqliteStore(tmp_path / FILE, wal_pages_max=pages_max)
    largest = 0

    def stop() -> bool:
        nonlocal largest
        largest = max(largest, store.stats()["wal_bytes"])
        return store.stats()["log_entries"] >= 30_000

    writing(store, 1, stop)
    stats = store.stats()
    # One commit may overshoot the bound, and each page carries a header of 24 bytes.
    assert largest < (pages_max * (WAL_GROWTH_MAX + 2)) * (stats["page_bytes"] + 24)
    store.close()
    assert not Path(f"{store.path}-wal").exists()
    assert store.path.stat().st_size > 3 * largest


def test_the_writer_itself_bounds_the_log_when_nobody_copies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteAheadLog, "_copy_when_long", lambda self, db: db.close())
    store = SqliteStore(tmp_path / FILE, wal_pages_max=100)
    writing(store, 1, lambda: store.stats()["log_entries"] >= 5_000)
    assert store.stats()["wal_bytes"] < 100 * (WAL_GROWTH_MAX + 1) * (24 + PAGE_BYTES)
    store.close()


def test_a_long_reader_holds_up_neither_commits_nor_the_log_for_ever(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / FILE, wal_pages_max=100)
    record(store, entry(1))
    reader = apsw.Connection(str(store.path))
    reader.execute("BEGIN; SELECT count(*) FROM log").fetchall()
    start = time.monotonic()
    last = writing(store, 2, lambda: store.stats()["log_entries"] >= 4_000)
    assert time.monotonic() - start < 120, "each of eighty commits waited for the reader"
    assert reader.execute("SELECT count(*) FROM log").get == 1
    assert store._wal.pages > 100
    reader.close()
    while store._wal.pages > 100:
        assert time.monotonic() - start < 240, "the log is not begun anew"
        record(store, entry(last))
        last += 1
        time.sleep(0.05)
    grown = store.stats()["wal_bytes"]
    writing(store, last, lambda: store.stats()["log_entries"] >= 12_000)
    assert store.stats()["wal_bytes"] <= grown
    assert len(list(feed_pages(store))) == store.stats()["log_entries"]
    store.close()


# --- kill -9 ----------------------------------------------------------------------------------------------

ACKNOWLEDGE = """
import os
import sys
from threadline.kernel.store import Batch, Key, LogEntry, Put
from threadline.stores.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1], wal_pages_max=100, tail_entries_max=40)
number = int(sys.argv[2])
while True:
    batches = []
    for _ in range(3):
        places = range(number * 5, number * 5 + 5)
        events = [LogEntry("aa" * 16, place, 0, "t", f"{place:032x}", 0, os.urandom(700)) for place in places]
        batches.append(Batch(events, [Put(Key("t", "counter"), b"%d" % number, number)]))
        number += 1
    assert not any(store.commit(batches))
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    count, killed_at_work = 0, 0
    for _ in range(KILLS):
        acknowledged = count
        with python(ACKNOWLEDGE, tmp_path / FILE, count) as writer:
            assert writer.stdout is not None
            # Killed between the answers or over one, after so many of them, however fast they come.
            for _ in range(draw.randint(1, 8)):
                acknowledged = int(writer.stdout.readline())
            killer = threading.Timer(draw.uniform(0, 0.02), writer.kill)
            killer.start()
            while (line := writer.stdout.readline()).endswith("\n"):
                acknowledged = int(line)
            killer.join()
        killed_at_work += writer.returncode == -signal.SIGKILL
        store = SqliteStore(tmp_path / FILE)
        item = store.get([Key("t", "counter")])[0]
        assert item is not None
        count = item.version
        # At most the one call whose answer was cut off may be there without having been acknowledged.
        assert count in {acknowledged, acknowledged + 3}
        assert item.value == b"%d" % (count - 1)
        assert [page.entry.sequence for page in feed_pages(store)] == list(range(count * 5))
        assert len(store.find([f"{number:032x}" for number in range(count * 5)])) == count * 5
        assert len(list(event_pages(store, "aa" * 16))) == count * 5
        assert store.integrity() == []
        store.close()
    assert killed_at_work == KILLS
    assert count > KILLS * 3
