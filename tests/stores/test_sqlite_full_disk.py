"""A full disk: refused, nothing half written, and all well again when there is room."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from tests.stores.incompressible import noise
from threadline.kernel.errors import StoreFull
from threadline.kernel.store import Batch, Put, feed_pages
from threadline.stores.sqlite.store import PAGE_BYTES, SqliteStore
from threadline.testing.store_cases import KEY, entry

FILE = "threadline.db"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own; mounting one needs root."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a file system: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill_up(store: SqliteStore, first: int) -> int:
    """Commit until the store refuses; gives the number of the first batch that it did not take."""
    while True:
        try:
            commit(store, first)
        except StoreFull:
            return first
        first += 1


def commit(store: SqliteStore, number: int) -> None:
    """Commit batch ``number``: twenty events and the item that counts batches."""
    events = [entry(number * 20 + n, body=noise(n, 900)) for n in range(20)]
    assert store.commit([Batch(events, [Put(KEY, b"%d" % number)])]) == [None]


def fill_disk(ballast: io.FileIO) -> None:
    """Write until there is no room for another page."""
    with suppress(OSError):
        while True:
            ballast.write(bytes(4_096))


def check_whole(store: SqliteStore, batches: int) -> None:
    """Exactly these batches are there, events and item alike."""
    item = store.get([KEY])[0]
    assert item is not None
    assert (item.version, item.value) == (batches, b"%d" % (batches - 1))
    assert [page.entry.sequence for page in feed_pages(store)] == list(range(batches * 20))
    assert store.integrity() == []


@pytest.mark.parametrize("wal_pages_max", [50, 16_000])
def test_a_full_disk_refuses_and_recovers(small_disk: Path, wal_pages_max: int) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(17_000_000))
    store = SqliteStore(small_disk / FILE, wal_pages_max=wal_pages_max)
    full = fill_up(store, 0)
    assert full > 5
    for _ in range(3):
        assert fill_up(store, full) >= full
    full = fill_up(store, full)
    check_whole(store, full)
    ballast.unlink()
    again = fill_up(store, full)
    assert again > full
    check_whole(store, again)
    store.close()
    store = SqliteStore(small_disk / FILE)
    check_whole(store, again)
    store.close()


def test_the_index_of_the_log_cannot_grow_on_a_full_disk(small_disk: Path) -> None:
    # The index grows by a block at 4,062 pages of log, and SQLite calls its failure an I/O error. So bring the log near
    # that, fill the disk, and give room back page by page until the log is past it.
    store = SqliteStore(small_disk / FILE, wal_pages_max=100_000)
    batches = 0
    while store.stats()["wal_bytes"] < 4_040 * (24 + PAGE_BYTES):
        commit(store, batches)
        batches += 1
    causes = set()
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        fill_disk(ballast)
        while store.stats()["wal_bytes"] < 4_100 * (24 + PAGE_BYTES):
            try:
                commit(store, batches)
                batches += 1
            except StoreFull as error:
                causes.add(type(error.__cause__))
                ballast.truncate(ballast.seek(0, os.SEEK_END) - 4_096)
            check_whole(store, batches)
    assert causes == {apsw.FullError, apsw.IOError}
    store.close()


def test_a_store_on_a_full_disk_opens_again_when_there_is_room(small_disk: Path) -> None:
    store = SqliteStore(small_disk / FILE)
    commit(store, 0)
    store.close()
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        fill_disk(ballast)
    for readonly in (False, True):
        with pytest.raises(StoreFull):
            SqliteStore(small_disk / FILE, readonly=readonly)
    (small_disk / "ballast").unlink()
    store = SqliteStore(small_disk / FILE)
    check_whole(store, 1)
    store.close()


def test_a_limit_on_pages_is_a_full_disk_too(tmp_path: Path) -> None:
    # Needs no right to mount anything, so this much is tested everywhere.
    store = SqliteStore(tmp_path / FILE)
    commit(store, 0)
    assert store._writer is not None
    store._writer.pragma("max_page_count", 60)
    full = fill_up(store, 1)
    assert full > 1
    check_whole(store, full)
    store._writer.pragma("max_page_count", 10_000)
    for number in range(full, full + 20):
        commit(store, number)
    check_whole(store, full + 20)
    store.close()
