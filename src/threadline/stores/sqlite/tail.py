"""The newest entries of the log, indexed in memory until there are enough of them to be worth a visit to the disk."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, NamedTuple

from threadline.kernel.store import ERASED_THREAD

BUCKETS = 256
"""Entries are kept apart by the first byte of what they are looked up by, so that they can be moved in key order."""

LEAVING_DROPPED = 8
"""Buckets of a generation that has left which are dropped with each commit."""

ERASED = bytes.fromhex(ERASED_THREAD)
"""The thread of erased entries, which have an id and a position but no place in a thread."""

IndexRow = tuple[int, bytes, int, int, int, bytes, int]
"""(position, thread, sequence, occurred_at, type, id, digest): what the index needs of a log entry."""


Place = tuple[int, int, int, int]
"""(occurred_at, sequence, type, position): where an entry stands in its thread, and in the log.

A plain tuple of numbers: the garbage collector leaves those alone, and there are tens of thousands.
"""
BEFORE_ALL: tuple[int, ...] = ()
AFTER_ALL: tuple[int, ...] = (1 << 63,)
"""What every `Place` stands between. Shorter tuples are bounds as well: (occurred_at,) or (occurred_at, sequence)."""


class Generation:
    """Entries of the log after one position. Grows at its end only; read by other threads while it grows."""

    def __init__(self, after: int) -> None:
        self.count = 0
        self.last = after
        """All entries up to this position are here. Set last, so that nobody sees a part of a commit."""
        self.ids: list[dict[bytes, tuple[int, int]]] = [{} for _ in range(BUCKETS)]
        """Event id -> (position, digest), by the id's first byte."""
        self.threads: list[dict[bytes, list[Place]]] = [{} for _ in range(BUCKETS)]
        """Thread -> its places in their order, by the thread's first byte."""

    def add(self, rows: Sequence[IndexRow]) -> None:
        """Take in the entries that follow ``last``."""
        ids, threads = self.ids, self.threads
        for position, thread, sequence, occurred_at, type, id, digest in rows:
            ids[id[0]][id] = (position, digest)
            if thread == ERASED:
                continue
            place = (occurred_at, sequence, type, position)
            bucket = threads[thread[0]]
            places = bucket.get(thread)
            if places is None:
                bucket[thread] = [place]
            elif places[-1] < place:
                places.append(place)
            else:
                insort(places, place)
        self.count += len(rows)
        if rows:
            self.last = rows[-1][0]

    def drop(self, rows: Sequence[IndexRow]) -> None:
        """Forget where erased entries stood in their threads; their ids stay."""
        positions: dict[bytes, set[int]] = {}
        for position, thread, *_, id, _ in rows:
            positions.setdefault(thread, set()).add(position)
            if id in self.ids[id[0]]:
                self.ids[id[0]][id] = (position, 0)
        for thread, gone in positions.items():
            bucket = self.threads[thread[0]]
            # Replaced, not changed: another thread may be reading the list.
            places = [place for place in bucket.get(thread, ()) if place[3] not in gone]
            if places:
                bucket[thread] = places
            else:
                bucket.pop(thread, None)

    def bucket(self, number: int) -> tuple[list[tuple[bytes, int]], list[tuple[Any, ...]]]:
        """The rows of one bucket for the two indexes on disk, each in the order of its key."""
        ids = sorted((id, position) for id, (position, _) in self.ids[number].items())
        threads = [(thread, *place) for thread, places in sorted(self.threads[number].items()) for place in places]
        return ids, threads


class View(NamedTuple):
    """The tail as one reader sees it: what is added later does not show."""

    generations: tuple[Generation, ...]
    last: int

    def find(self, id: bytes) -> tuple[int, int] | None:
        """The (position, digest) of an event, or None."""
        for generation in self.generations:
            pair = generation.ids[id[0]].get(id)
            if pair is not None and pair[0] <= self.last:
                return pair
        return None

    def places(
        self,
        thread: bytes,
        start: tuple[int, ...] = BEFORE_ALL,
        stop: tuple[int, ...] = AFTER_ALL,
        *,
        types: Collection[int | None] = (),
        limit: int | None = None,
        reverse: bool = False,
        erased: Collection[int] = (),
    ) -> list[Place]:
        """The places of a thread's events from ``start`` to before ``stop``, of all types or of some, but not those at
        the positions that are ``erased``.

        They are in order within a generation, and of each no more than ``limit``; one that arrives meanwhile may come
        twice if `extended`.
        """
        places: list[Place] = []
        for generation in self.generations:
            part = _between(generation.threads[thread[0]].get(thread, ()), start, stop)
            ordered = reversed(part) if reverse else part
            known = (place for place in ordered if place[3] <= self.last and (not types or place[2] in types))
            if erased:
                known = (place for place in known if place[3] not in erased)
            places.extend(islice(known, limit))
        return places

    def extended(self, rows: Sequence[IndexRow]) -> View:
        """This view with entries beyond it, for this reader alone."""
        beyond = Generation(self.last)
        beyond.add(rows)
        return View((*self.generations, beyond), max(self.last, beyond.last))


def _between(places: Sequence[Place], start: tuple[int, ...], stop: tuple[int, ...]) -> Sequence[Place]:
    while True:
        count = len(places)
        part = places[bisect_left(places, start) : bisect_left(places, stop)]
        # Another thread may have put something in meanwhile. Nothing is ever taken out.
        if len(places) == count:
            return part


class Tail:
    """All entries of the log that the index on disk may not have yet, as a young generation and one that is moving.

    One thread at a time may change it; any may look at a `view`. The moving generation is written to the disk bucket
    by bucket, in key order, while the young one fills: that visits each page of the index once, not once per entry.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._generations: tuple[Generation, ...] = (Generation(0),)
        self._moved = 0
        """Buckets of the moving generation that are on disk."""
        self._leaving: list[object] = []
        """What is of no more use, until it is dropped a part at a time: at once it would hold up everybody."""
        self._sealed = False

    def view(self) -> View:
        """What is here now."""
        generations = self._generations
        return View(generations, generations[-1].last)

    def add(self, rows: Sequence[IndexRow]) -> None:
        """Take in entries that were committed; they follow the last ones without a gap."""
        young = self._generations[-1]
        young.add(rows)
        del self._leaving[-LEAVING_DROPPED:]
        if young.count >= self._entries_max:
            self._generations = (*self._generations, Generation(young.last))

    def drop(self, rows: Sequence[IndexRow]) -> None:
        """Forget where entries that were erased stood in their threads."""
        for generation in self._generations:
            generation.drop(rows)

    def start(self, after: int) -> None:
        """Forget everything and begin after this position, up to which the index on disk is complete."""
        self._generations, self._moved = (Generation(after),), 0

    def forget(self, indexed: int) -> None:
        """Drop generations that the index on disk has whole."""
        while len(self._generations) > 1 and self._generations[0].last <= indexed:
            self._leaving += [*self._generations[0].ids, *self._generations[0].threads]
            self._generations, self._moved = self._generations[1:], 0

    def next_buckets(self, added: int) -> range:
        """The buckets to move with a commit of so many entries: twice as fast as the young generation fills."""
        if len(self._generations) == 1:
            return range(0)
        filled = (self._generations[-1].count + added) / self._entries_max
        stop = BUCKETS if self._sealed or len(self._generations) > 2 else min(BUCKETS, int(2 * filled * BUCKETS) + 1)
        return range(self._moved, max(self._moved, stop))

    def seal(self) -> None:
        """Close the young generation, however young, so that all of the tail is moved with no wait for more."""
        self._sealed = True
        if self._generations[-1].count:
            self._generations = (*self._generations, Generation(self._generations[-1].last))

    @property
    def moving(self) -> Generation:
        """The oldest generation, the one whose buckets `next_buckets` names."""
        return self._generations[0]

    def moved(self, buckets: range) -> None:
        """Note that these buckets are on disk, durably."""
        self._moved = max(self._moved, buckets.stop)
        if self._moved == BUCKETS:
            self.forget(self.moving.last)
