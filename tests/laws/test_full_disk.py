"""Law: when the disk is full events are refused, nothing is half there, and all goes on when there is room again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack_event
from threadline.kernel.errors import StoreFull
from threadline.kernel.event import Event, event_id
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios

BALLAST_BYTES = 23_700_000


class Tight(NamedTuple):
    """A store that will soon be full, and how to make room."""

    store: SqliteStore
    make_room: Callable[[], None]


def on_a_small_disk(folder: Path) -> Iterator[Tight]:
    disk = folder / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"needs the right to mount a file system: {made.stderr.decode().strip()}")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(BALLAST_BYTES))
        store = SqliteStore(disk / "thread.db", wal_pages_max=200)
        yield Tight(store, ballast.unlink)
        store.close()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def in_few_pages(folder: Path) -> Iterator[Tight]:
    """SQLite itself refuses to let the file grow: the same error, on any machine."""
    store = SqliteStore(folder / "thread.db", wal_pages_max=200)
    assert store._writer is not None
    store._writer.pragma("max_page_count", 300)

    def make_room() -> None:
        assert store._writer is not None
        store._writer.pragma("max_page_count", 1_000_000)

    yield Tight(store, make_room)
    store.close()


@pytest.fixture(params=[on_a_small_disk, in_few_pages], ids=lambda each: each.__name__)
def tight(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tight]:
    yield from request.param(tmp_path)


def tell_until_full(on: Engine, calls: list[list[Event]]) -> int:
    """Tell calls until the store refuses one; its number."""
    for number, call in enumerate(calls):
        try:
            assert set(staging.statuses(on.recorder.record(call))) <= {"accepted", "duplicate"}
        except StoreFull:
            return number
    pytest.fail("the disk never filled up")


@pytest.mark.slow
def test_a_full_disk_refuses_whole_calls_and_goes_on(tight: Tight, seed: int) -> None:
    random = Random(seed)
    history = scenarios.history(random, 40, 4_000)
    calls = scenarios.batched(random, history, 60)
    on = staging.engine(tight.store)
    full = tell_until_full(on, calls)
    assert full > 10
    for _ in range(5):
        with pytest.raises(StoreFull):
            on.recorder.record([event for call in calls[full : full + 10] for event in call])
    assert_recorded(on, [event for call in calls[:full] for event in call])
    # Small ones may still fit where a large one did not; what is answered is there, what is refused is not.
    answered = [event for call in calls[:full] for event in call]
    for event in calls[full]:
        try:
            on.recorder.record([event])
            answered.append(event)
        except StoreFull:
            continue
    assert_recorded(on, answered)
    tight.make_room()
    again = calls[full : full + 40]
    for call in again:
        assert set(staging.statuses(on.recorder.record(call))) <= {"accepted", "duplicate"}
    told = [event for call in [*calls[:full], *again] for event in call]
    assert_recorded(on, told)
    clean = staging.tell(MemoryStore(), [told])
    assert staging.timeless(on) == staging.timeless(clean)


def assert_recorded(on: Engine, told: list[Event]) -> None:
    """Exactly these events and their consequences are in the log, and every person is what a refold makes of them."""
    ids = {event_id(event.workspace, event.source, event.key) for event in told}
    found, cursor = set(), ""
    while page := on.log.feed(cursor):
        found |= {each.entry.id for each in page if not unpack_event(each.entry).cause}
        cursor = page[-1].cursor
    assert found == ids
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
