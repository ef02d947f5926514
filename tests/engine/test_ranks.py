"""Counts of boards: read while others write, kept current, renewed where other processes write."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from threadline.engine.reading import ranks as module
from threadline.engine.reading.ranks import Ranks
from threadline.kernel.ranking import Board, Place, row_of
from threadline.kernel.store import Batch, Delete, Key, Put, Store
from threadline.kernel.time import DAY, SECOND
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import at_once

BOARD = Board("default", "points.1", "all", "")
OTHER = Board("default", "points.1", "all", "country=IT")


class Writer:
    """A process that writes scores and tells its ranks, as the recorder does."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.now = 1_000 * DAY
        self.lock = threading.Lock()
        self.ranks = Ranks(store, lambda: self.now, self.lock)
        self.random = Random(seed)
        self.scores: dict[str, Place] = {}

    def change(self, ends: bool = False) -> None:
        """Give somebody another score."""
        person = f"{self.random.randrange(300) * 0x01010101:032x}"[::-1]
        end = self.now + self.random.randrange(1, 3 * DAY) if ends else None
        place = Place(self.random.randrange(50), person, end)
        before = self.scores.get(person)
        if before == place:
            return
        writes: list[Put | Delete] = [Put(_key(BOARD, place), b"\x00"), Put(_key(OTHER, place), b"\x00")]
        if before is not None:
            writes += [Delete(_key(BOARD, before)), Delete(_key(OTHER, before))]
        with self.lock:
            batch = Batch(writes=writes)
            assert self.store.commit([batch]) == [None]
            self.ranks.committed([batch])
        self.scores[person] = place

    def expected(self, score: int) -> tuple[int, int]:
        counted = [p.score for p in self.scores.values() if p.counts_at(self.now)]
        return sum(other > score for other in counted), len(counted)


def _key(board: Board, place: Place) -> Key:
    return Key(*row_of(board, place)[:3])


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "thread.db")


@pytest.mark.slow
def test_a_board_that_is_read_while_others_write_misses_and_doubles_nothing(
    store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE_ITEMS_MAX", 7)  # many pages, so that commits come in between
    writer = Writer(store, seed)
    for _ in range(300):
        writer.change()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            writer.change()

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(10):
        writer.ranks.counted(BOARD, 25, writer.now, expiring=False)
        writer.ranks.clear()
    last = writer.ranks.counted(BOARD, 25, writer.now, expiring=False)
    time.sleep(0.05)
    stop.set()
    thread.join()
    assert last.total
    for score in range(-1, 51):
        assert writer.ranks.counted(BOARD, score, writer.now, expiring=False)[:2] == writer.expected(score)
    best = writer.ranks.best(BOARD, writer.now, 1_000, expiring=False)
    assert sorted(best) == sorted(writer.scores.values())
    store.close()


def test_scores_that_end_leave_when_they_do(seed: int) -> None:
    writer = Writer(MemoryStore(), seed)
    kept = 0
    for turn in range(400):
        writer.now += writer.random.randrange(DAY // 8)
        writer.change(ends=True)
        writer.scores = {k: p for k, p in writer.scores.items() if p.expires_at is not None and p.counts_at(writer.now)}
        expected = writer.expected(10)
        assert writer.ranks.counted(BOARD, 10, writer.now, expiring=True)[:2] == expected
        kept = max(kept, expected[1])
        if turn % 40 == 0:
            fresh = Ranks(writer.store, lambda: writer.now, writer.lock)
            assert fresh.counted(BOARD, 10, writer.now, expiring=True)[:2] == expected
            assert sorted(fresh.best(BOARD, writer.now, 1_000, expiring=True)) == sorted(writer.scores.values())
    assert kept > 10


def test_what_other_processes_wrote_is_taken_in_after_a_while(seed: int) -> None:
    store = MemoryStore()
    writer = Writer(store, seed)
    other = Ranks(store, lambda: writer.now, threading.Lock())
    other.refresh_seconds = 60
    for _ in range(50):
        writer.change()
    first = other.counted(BOARD, 0, writer.now, expiring=False)
    assert (first.total, first.as_of) == (len(writer.scores), writer.now)
    for _ in range(200):
        writer.change()
    writer.now += 30 * SECOND
    again = other.counted(BOARD, 0, writer.now, expiring=False)
    assert again == first  # not old enough; it says as of when
    writer.now += 16 * SECOND
    assert other.counted(BOARD, 0, writer.now, expiring=False) == first  # nobody waits for the reading
    deadline = time.monotonic() + 60
    while other.counted(BOARD, 0, writer.now, expiring=False) == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    renewed = other.counted(BOARD, 0, writer.now, expiring=False)
    assert renewed[:2] == writer.expected(0)
    assert renewed.as_of == writer.now
    for _ in range(200):
        writer.change()
    writer.now += 61 * SECOND
    # Nobody has asked for so long that what is there is older than it may be: now one waits.
    late = other.counted(BOARD, 0, writer.now, expiring=False)
    assert (late[:2], late.as_of) == (writer.expected(0), writer.now)


@pytest.mark.parametrize("pause", [0, 1, 44, 46, 59, 60, 61, 500])
def test_no_answer_is_older_than_it_may_be(seed: int, pause: int) -> None:
    """Many ask at once, and the reading itself takes time: whoever asks gets what was so at most a minute before."""
    writer = Writer(MemoryStore(), seed)
    slow = _SlowStore(writer)
    other = Ranks(slow, lambda: writer.now, threading.Lock())  # type: ignore[arg-type]
    other.refresh_seconds = 60
    for _ in range(4):
        writer.change()
        writer.now += pause * SECOND
        asked_at, told = writer.now, []

        def ask(told: list[int] = told) -> None:
            told.append(other.counted(BOARD, 0, writer.now, expiring=False).as_of)

        at_once(*[ask] * 4)
        assert len(told) == 4
        assert all(as_of >= asked_at - 60 * SECOND for as_of in told)


class _SlowStore:
    """A store in which time goes by: a second with every page."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def query(self, *args: Any, **named: Any) -> Any:
        self.writer.now += SECOND
        return self.writer.store.query(*args, **named)


def test_after_a_commit_of_which_nobody_knows_the_board_is_read_again(seed: int) -> None:
    writer = Writer(MemoryStore(), seed)
    writer.change()
    assert writer.ranks.counted(BOARD, -1, writer.now, expiring=False).total == 1
    place = Place(7, "f" * 32, None)
    writer.store.commit([Batch(writes=[Put(_key(BOARD, place), b"\x00")])])
    writer.ranks.committed(None)
    assert writer.ranks.counted(BOARD, -1, writer.now, expiring=False).total == 2


def test_boards_that_nobody_asks_for_are_forgotten(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOARDS_COUNTED_MAX", 3)
    writer = Writer(MemoryStore(), seed)
    for _ in range(20):
        writer.change()
    for scope in ("a", "b", "", "c", "", "d", ""):
        board = BOARD._replace(scope=scope)
        assert writer.ranks.counted(board, -1, writer.now, expiring=False).total == (0 if scope else len(writer.scores))
        writer.change()
    assert len(writer.ranks._counts) == 3
    assert writer.ranks.counted(BOARD, 20, writer.now, expiring=False)[:2] == writer.expected(20)
