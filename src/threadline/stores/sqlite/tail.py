"""The newest entries of the log, indexed in memory until there are enough of them to be worth a visit to the disk."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from threadline.kernel.store import ERASED_THREAD

BUCKETS = 256
"""Entries are kept apart by the first byte of what they are looked up by, so that they can be moved in key order."""

KEY_BYTES = 16
"""Of an id, and of a thread."""
CHAIN_MAX = 24
"""Entries of a thread that are sorted when they are asked for; of more the order is kept."""

ERASED = bytes.fromhex(ERASED_THREAD)
"""The thread of erased entries, which have an id and a position but no place in a thread."""

IndexRow = tuple[int, bytes, int, int, int, bytes, int]
"""(position, thread, sequence, occurred_at, type, id, digest): what the index needs of a log entry."""


Place = tuple[int, int, int, int]
"""(occurred_at, sequence, type, position): where an entry stands in its thread, and in the log."""
BEFORE_ALL: tuple[int, ...] = ()
AFTER_ALL: tuple[int, ...] = (1 << 63,)
"""What every `Place` stands between. Shorter tuples are bounds as well: (occurred_at,) or (occurred_at, sequence)."""


class Generation:
    """Entries of the log after one position. Grows at its end only; read by other threads while it grows.

    Entries are numbered, and what is known of them stands in columns: some 90 bytes each, where dicts, lists and tuples
    took six times that, and nothing that the garbage collector has to look at. Two hash tables lead to the numbers.
    """

    def __init__(self, after: int, room: int) -> None:
        self.count = 0
        self.last = after
        """All entries up to this position are here. Set last, so that nobody sees a part of a commit."""
        self._first = after + 1
        """The position of the first entry; the others follow without a gap."""
        self._ids, self._threads = bytearray(), bytearray()
        self._digests, self._sequences, self._times = array("q"), array("q"), array("q")
        self._types = array("I")
        self._earlier = array("I")
        """The number, plus one, of the entry before in the same thread; 0: there is none."""
        self._depth = array("I")
        """How many entries of its thread come before an entry."""
        slots = 1 << max(4, (2 * room - 1).bit_length())
        self._by_id, self._by_thread = array("I", bytes(4 * slots)), array("I", bytes(4 * slots))
        """Number, plus one, of the entry with an id, and of the newest one of a thread; 0: a free slot."""
        self._id_buckets = [array("I") for _ in range(BUCKETS)]
        self._thread_buckets = [array("I") for _ in range(BUCKETS)]
        """The numbers of entries by the first byte of their id, and of their thread."""
        self._long: dict[bytes, array[int]] = {}
        """The numbers of the entries of threads with many, in the order of their places."""
        self._erased: frozenset[int] = frozenset()
        """The numbers of entries that were erased since."""

    def add(self, rows: Sequence[IndexRow]) -> None:
        """Take in the entries that follow ``last``."""
        if not rows:
            return
        if not self.count:
            self._first = rows[0][0]
        if 4 * (self.count + len(rows)) > 3 * len(self._by_id):
            slots = 1 << (2 * (self.count + len(rows))).bit_length()
            self._by_id = _grown(self._by_id, self._ids, slots)
            self._by_thread = _grown(self._by_thread, self._threads, slots)
        _, threads, sequences, times, types, ids, digests = zip(*rows, strict=True)
        self._ids += b"".join(ids)
        self._threads += b"".join(threads)
        self._digests.extend(digests)
        self._sequences.extend(sequences)
        self._times.extend(times)
        self._types.extend(types)
        by_id, by_thread, mask = self._by_id, self._by_thread, len(self._by_id) - 1
        earlier, depth = self._earlier, self._depth
        for number, (thread, id) in enumerate(zip(threads, ids, strict=True), self.count):
            self._id_buckets[id[0]].append(number)
            slot = hash(id) & mask
            while by_id[slot]:
                slot = (slot + 1) & mask
            by_id[slot] = number + 1
            if thread == ERASED:
                earlier.append(0)
                depth.append(0)
                continue
            self._thread_buckets[thread[0]].append(number)
            slot, before = _look_up(by_thread, self._threads, thread)
            earlier.append(before)
            depth.append(depth[before - 1] + 1 if before else 0)
            by_thread[slot] = number + 1
            if depth[number] >= CHAIN_MAX:
                self._order(thread, number)
        self.count += len(rows)
        self.last = rows[-1][0]

    def _order(self, thread: bytes, number: int) -> None:
        """Keep the order of a thread's entries from so many on: before, they are sorted whenever they are asked for."""
        ordered = self._long.get(thread)
        if ordered is None:
            self._long[thread] = array("I", sorted(self._chain(number + 1), key=self._place))
        elif not ordered or self._place(ordered[-1]) < self._place(number):
            ordered.append(number)
        else:
            insort(ordered, number, key=self._place)

    def _chain(self, newest: int) -> Iterator[int]:
        """The numbers of the entries of a thread, the newest first."""
        while newest:
            newest -= 1
            if newest not in self._erased:
                yield newest
            newest = self._earlier[newest]

    def _place(self, number: int) -> Place:
        return (self._times[number], self._sequences[number], self._types[number], self._first + number)

    def find(self, id: bytes) -> tuple[int, int] | None:
        """The (position, digest) of an event, or None; the digest of an erased one is 0."""
        _, number = _look_up(self._by_id, self._ids, id)
        return (self._first + number - 1, self._digests[number - 1]) if number else None

    def places(
        self, thread: bytes, start: tuple[int, ...], stop: tuple[int, ...], reverse: bool = False
    ) -> Iterator[Place]:
        """The places of a thread's entries from ``start`` to before ``stop``, in order."""
        _, newest = _look_up(self._by_thread, self._threads, thread)
        if not newest:
            return iter(())
        while (ordered := self._long.get(thread)) is not None:
            count = len(ordered)
            first, end = bisect_left(ordered, start, key=self._place), bisect_left(ordered, stop, key=self._place)
            part = ordered[first:end]
            # Another thread may have put something in meanwhile. Nothing is ever taken out.
            if len(ordered) == count:
                return map(self._place, reversed(part) if reverse else part)
        places = (place for place in map(self._place, self._chain(newest)) if start <= place < stop)
        return iter(sorted(places, reverse=reverse))

    def drop(self, rows: Sequence[IndexRow]) -> None:
        """Forget where erased entries stood in their threads; their ids stay."""
        numbers = {row[0] - self._first: row[1] for row in rows if self._first <= row[0] < self._first + self.count}
        for number in numbers:
            self._digests[number] = 0
        self._erased |= numbers.keys()
        for thread in {*numbers.values()} & self._long.keys():
            # Replaced, not changed: another thread may be reading the array.
            remaining = [number for number in self._long[thread] if number not in numbers]
            self._long[thread] = array("I", remaining)

    def bucket(self, number: int) -> tuple[list[tuple[bytes, int]], list[tuple[Any, ...]]]:
        """The rows of one bucket for the two indexes on disk, each in the order of its key."""
        ids = sorted((self._key(self._ids, entry), self._first + entry) for entry in self._id_buckets[number])
        threads = sorted(
            (self._key(self._threads, entry), *self._place(entry))
            for entry in self._thread_buckets[number]
            if entry not in self._erased
        )
        return ids, threads

    @staticmethod
    def _key(keys: bytearray, number: int) -> bytes:
        return bytes(keys[KEY_BYTES * number : KEY_BYTES * (number + 1)])


def _look_up(table: array[int], keys: bytearray, key: bytes) -> tuple[int, int]:
    """Where a key stands in a table, and what stands there; 0: it is not there, and this slot is free for it.

    Hashes of bytes differ from process to process, so that nobody can choose ids that meet.
    """
    mask = len(table) - 1
    slot = hash(key) & mask
    while number := table[slot]:
        if keys[KEY_BYTES * number - KEY_BYTES : KEY_BYTES * number] == key:
            break
        slot = (slot + 1) & mask
    return slot, number


def _grown(table: array[int], keys: bytearray, slots: int) -> array[int]:
    """The same table with more slots."""
    grown = array("I", bytes(4 * slots))
    for number in filter(None, table):
        key = bytes(keys[KEY_BYTES * number - KEY_BYTES : KEY_BYTES * number])
        grown[_look_up(grown, keys, key)[0]] = number
    return grown


class View(NamedTuple):
    """The tail as one reader sees it: what is added later does not show."""

    generations: tuple[Generation, ...]
    last: int

    def find(self, id: bytes) -> tuple[int, int] | None:
        """The (position, digest) of an event, or None."""
        for generation in self.generations:
            pair = generation.find(id)
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
            ordered = generation.places(thread, start, stop, reverse)
            known = (place for place in ordered if place[3] <= self.last and (not types or place[2] in types))
            if erased:
                known = (place for place in known if place[3] not in erased)
            places.extend(islice(known, limit))
        return places

    def extended(self, rows: Sequence[IndexRow]) -> View:
        """This view with entries beyond it, for this reader alone."""
        beyond = Generation(self.last, len(rows))
        beyond.add(rows)
        return View((*self.generations, beyond), max(self.last, beyond.last))


class Tail:
    """All entries of the log that the index on disk may not have yet, as a young generation and one that is moving.

    One thread at a time may change it; any may look at a `view`. The moving generation is written to the disk bucket
    by bucket, in key order, while the young one fills: that visits each page of the index once, not once per entry.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._generations: tuple[Generation, ...] = (Generation(0, entries_max),)
        self._moved = 0
        """Buckets of the moving generation that are on disk."""
        self._sealed = False

    def view(self) -> View:
        """What is here now."""
        generations = self._generations
        return View(generations, generations[-1].last)

    def add(self, rows: Sequence[IndexRow]) -> None:
        """Take in entries that were committed; they follow the last ones without a gap."""
        young = self._generations[-1]
        young.add(rows)
        if young.count >= self._entries_max:
            self._generations = (*self._generations, Generation(young.last, self._entries_max))

    def drop(self, rows: Sequence[IndexRow]) -> None:
        """Forget where entries that were erased stood in their threads."""
        for generation in self._generations:
            generation.drop(rows)

    def start(self, after: int) -> None:
        """Forget everything and begin after this position, up to which the index on disk is complete."""
        self._generations, self._moved = (Generation(after, self._entries_max),), 0

    def forget(self, indexed: int) -> None:
        """Drop generations that the index on disk has whole."""
        while len(self._generations) > 1 and self._generations[0].last <= indexed:
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
            self._generations = (*self._generations, Generation(self._generations[-1].last, self._entries_max))

    @property
    def moving(self) -> Generation:
        """The oldest generation, the one whose buckets `next_buckets` names."""
        return self._generations[0]

    def moved(self, buckets: range) -> None:
        """Note that these buckets are on disk, durably."""
        self._moved = max(self._moved, buckets.stop)
        if self._moved == BUCKETS:
            self.forget(self.moving.last)
