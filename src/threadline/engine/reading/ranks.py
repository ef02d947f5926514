"""Ranks: the best of a board and the places around one, from its rows; how many are above a score, from counts."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice

from threadline.engine.reading.ordered_counts import OrderedCounts
from threadline.kernel.limits import BOARDS_COUNTED_MAX, PAGE_ITEMS_MAX
from threadline.kernel.ranking import TABLE, Board, Counted, Place, alike, board_of, partitions, place_like, place_of
from threadline.kernel.store import Batch, Delete, Put, Store, beyond
from threadline.kernel.time import CLOCK_SKEW_MAX, SECOND, Clock

_BEHIND_ALL = "\U0010ffff"
RENEWED_FROM = 0.75
"""Fraction of their lifetime after which counts are renewed in the background, so that no reader waits."""


class _Counts:
    """One board's scores, counted. Scores that expire are listed by their end, and taken out at it."""

    def __init__(self, board: Board, expiring: bool, as_of: int) -> None:
        self.as_of = as_of
        self.scores = OrderedCounts()
        self.ends: dict[int, dict[int, int]] = {}
        """End -> score -> how often, of scores that are counted and will end."""
        self.heap: list[int] = []
        self.now = as_of
        """Scores that ended up to here are out."""
        self.read: dict[str, str] | None = dict.fromkeys(partitions(board, as_of, expiring=expiring), "")
        """While the board is read: its partitions -> the last sort read of each. None once all of it is."""

    def change(self, place: Place, count: int) -> None:
        end = place.expires_at
        if end is None:
            self.scores.add(place.score, count)
        elif end > self.now:
            if end not in self.ends:
                self.ends[end] = {}
                heapq.heappush(self.heap, end)
            cached = self.ends[end]
            cached[place.score] = cached.get(place.score, 0) + count
            self.scores.add(place.score, count)

    def advance(self, now: int) -> None:
        """Take out what has ended by now."""
        while self.heap and self.heap[0] <= now:
            for score, count in self.ends.pop(heapq.heappop(self.heap)).items():
                self.scores.add(score, -count)
        self.now = max(self.now, now)

    def note(self, partition: str, sort: str, count: int) -> None:
        """Count a row that was committed or removed; one that the reading has not reached yet is met there as it is."""
        if self.read is None or sort <= self.read.get(partition, sort):
            self.change(place_of(sort), count)


class Ranks:
    """Counts of the boards that are asked for, at most `BOARDS_COUNTED_MAX` of them. Thread-safe.

    A board is read once, page by page, and kept current by this process's own commits. Where other processes write to
    the same store it is read again: in the background once it is nearly ``refresh_seconds`` old, and if nobody asked
    for so long that it is older, before the answer.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        committing: AbstractContextManager[object],
        refresh_seconds: float | None = None,
        watch: Callable[[Callable[[Sequence[Batch] | None], None]], None] = lambda watcher: None,
    ) -> None:
        """``watch`` has `committed` called with each commit from then on; it is not before the first board."""
        self.store = store
        self.clock = clock
        self.refresh_seconds = refresh_seconds
        """Lifetime of counts; None where no other process writes to this store."""
        self._watch = watch
        self._is_watching = False
        self._committing = committing
        """Locked during a commit and its `note`, so that no read under it is torn by one."""
        self._counts: dict[Board, _Counts] = {}
        self._renewed: dict[Board, _Counts] = {}
        """Boards that are being read again."""
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        """One board is read at a time."""

    def counted(self, board: Board, score: int, now: int, *, expiring: bool) -> Counted:
        """How many have more than a score, and how many there are. The first time it reads the whole board."""
        asked_at = self.clock()
        counts = self._cached(board)
        if counts is None or self._age(counts, asked_at) > 1:
            counts = self._read_once(board, expiring, asked_at)
        elif self._age(counts, asked_at) > RENEWED_FROM:
            self._renew(board, expiring)
        with self._lock:
            counts.advance(now)
            as_of = self.clock() if self.refresh_seconds is None else counts.as_of
            return Counted(counts.scores.above(score), counts.scores.total, as_of)

    def committed(self, batches: Sequence[Batch] | None) -> None:
        """Count the batches of this process before its next commit; None: it is unknown which went through."""
        if not self._counts and not self._renewed:
            return
        if batches is None:
            self.clear()
            return
        for batch in batches:
            for write in batch.writes:
                if write.key.table == TABLE:
                    self._note(write)

    def clear(self) -> None:
        """Drop all counts: rows were written past `note`."""
        with self._lock:
            self._counts.clear()
            self._renewed.clear()

    def _note(self, write: object) -> None:
        if not isinstance(write, Put | Delete):
            return
        board = board_of(write.key.partition)
        count = 1 if isinstance(write, Put) else -1
        with self._lock:
            for counts in (self._counts.get(board), self._renewed.get(board)):
                if counts is not None:
                    counts.note(write.key.partition, write.key.sort, count)

    def _cached(self, board: Board) -> _Counts | None:
        with self._lock:
            counts = self._counts.pop(board, None)
            if counts is not None:
                self._counts[board] = counts  # the latest used stands last
            return None if counts is None or counts.read is not None else counts

    def _age(self, counts: _Counts, now: int) -> float:
        """The age of counts as a fraction of their lifetime; those of a clock that was ahead are too old."""
        if max(counts.as_of, counts.now) - now > CLOCK_SKEW_MAX:
            return 2  # scores are out of them that have not ended yet
        return 0 if self.refresh_seconds is None else (now - counts.as_of) / (self.refresh_seconds * SECOND)

    def _read_once(self, board: Board, expiring: bool, asked_at: int) -> _Counts:
        with self._reading:
            counts = self._cached(board)  # another thread may have read it meanwhile
            if counts is None or self._age(counts, asked_at) > 1:
                if not self._is_watching:
                    self._watch(self.committed)
                    self._is_watching = True
                counts = _Counts(board, expiring, self.clock())
                with self._lock:
                    self._counts[board] = counts
                    while len(self._counts) > BOARDS_COUNTED_MAX:
                        del self._counts[next(iter(self._counts))]
                self._fill(counts)
            return counts

    def _renew(self, board: Board, expiring: bool) -> None:
        """Read a board again in the background; readers use the present counts meanwhile."""
        counts = _Counts(board, expiring, self.clock())
        with self._lock:
            if board in self._renewed:
                return
            self._renewed[board] = counts

        def work() -> None:
            try:
                with self._reading:
                    self._fill(counts)
                with self._lock:
                    if self._renewed.get(board) is counts and board in self._counts:
                        self._counts[board] = counts
            finally:
                with self._lock:
                    self._renewed.pop(board, None)

        threading.Thread(target=work, name="threadline-ranks", daemon=True).start()

    def _fill(self, counts: _Counts) -> None:
        read = counts.read
        assert read is not None
        for partition in list(read):
            after = ""
            while True:
                # Writers come between two pages, not within one: `note` counts what they change behind this place, and
                # what they change ahead of it is met as it is.
                with self._committing:
                    page = self.store.query(TABLE, partition, start=beyond(after), limit=PAGE_ITEMS_MAX)
                    with self._lock:
                        for score, end in (met := Counter(alike(item.key.sort) for item in page)):
                            counts.change(place_like(score, end), met[score, end])
                        full = len(page) == PAGE_ITEMS_MAX
                        after = page[-1].key.sort if page else after
                        read[partition] = after if full else _BEHIND_ALL
                if not full:
                    break
        with self._committing, self._lock:
            counts.read = None

    # --- the order of a board --------------------------------------------------------------

    def best(self, board: Board, now: int, limit: int, *, expiring: bool) -> list[Place]:
        """The first places."""
        places = (
            self._places(partition, "", None, False, now, limit)
            for partition in partitions(board, now, expiring=expiring)
        )
        return list(islice(heapq.merge(*places, key=_order), limit))

    def around(self, board: Board, place: Place, now: int, limit: int, *, expiring: bool) -> list[Place]:
        """The ``limit`` places before one and after it, with itself in the middle."""
        named, sort = partitions(board, now, expiring=expiring), place.sort
        worse = heapq.merge(
            *(self._places(partition, sort, None, False, now, limit + 1) for partition in named), key=_order
        )
        better = heapq.merge(
            *(self._places(partition, "", sort, True, now, limit) for partition in named), key=_order, reverse=True
        )
        before = [other for other in islice(better, limit) if other != place]
        after = [other for other in islice(worse, limit + 1) if other != place]
        return [*reversed(before), place, *after[:limit]]

    def _places(
        self, partition: str, start: str, stop: str | None, reverse: bool, now: int, limit: int
    ) -> Iterator[Place]:
        """Places of one partition that still count, page by page: those before ``stop`` and from ``start`` on."""
        size = min(limit, max(16, limit // 4), PAGE_ITEMS_MAX)  # the best of all are spread over the partitions
        while True:
            page = self.store.query(TABLE, partition, start=start, stop=stop, limit=size, reverse=reverse)
            for item in page:
                place = place_of(item.key.sort)
                if place.counts_at(now):
                    yield place
            if len(page) < size:
                return
            if reverse:
                stop = page[-1].key.sort
            else:
                start = beyond(page[-1].key.sort)


def _order(place: Place) -> str:
    return place.sort
