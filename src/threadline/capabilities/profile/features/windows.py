"""Windows: a series of UTC-aligned buckets that keeps single entries where few, a tally where many.

A bucket is ``[index, [entry, …]]`` with at most `WINDOW_BUCKET_ENTRIES_MAX` sorted entries, or ``[index, t of its
first, tally]``. Which of the two depends on how many entries it has had and never on their order. Where tallies are
small, a third member holds those of the bucket's `PARTS`, None for one without entries: of a bucket that a window cuts,
a view then needs single events of an eighth or two, and not of up to all. A bucket that ends at or before (newest −
span) is dropped: since a view is asked only at instants after the newest event, no window of the series can reach it
any more.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from threadline.capabilities.profile.features.cells import BUCKET_KEYS_MAX, Entry, Tally, TallyLayout
from threadline.kernel.limits import WINDOW_BUCKET_ENTRIES_MAX
from threadline.kernel.time import DAY, HOUR

Bucket = list[Any]

# At most about 130 buckets in a series, whatever its window: a state has to stay far below an item of the store.
_WIDTHS = ((2 * DAY, HOUR), (100 * DAY, DAY), (800 * DAY, 7 * DAY))
_WIDTH_LONGEST = 28 * DAY

PARTS = 8
"""Equal parts of a bucket that are tallied on their own."""

DUE_STEPS = 24
"""Where single events are not at hand, the leaving of an event is looked for in steps of 1/24 of a bucket."""


def bucket_width(window: int) -> int:
    """The width of the buckets for a window of this size, microseconds."""
    return next((width for longest, width in _WIDTHS if window <= longest), _WIDTH_LONGEST)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a window holds: its tally (None if nothing), and the time of the event that leaves it first."""

    tally: Tally | None
    leaves: int | None
    capped: bool = False
    """Whether a bucket has had more different values than it keeps, so that ``distinct`` is a lower bound."""


@dataclass(frozen=True, slots=True)
class Series:
    """The buckets of one width in one slot. ``span`` is the longest of its windows."""

    width: int
    span: int
    windows: tuple[int, ...]
    tally_layout: TallyLayout
    timed: bool
    """Entries are bare times; otherwise lists that begin with the time."""

    def push(self, buckets: list[Bucket], at: int, entry: Entry, newest: int) -> None:
        """Add an entry of time ``at``, in place; ``newest`` is the newest time of the slot, this entry included."""
        index = at // self.width
        if not buckets or index > buckets[-1][0]:
            buckets.append([index, [entry]])
        elif index == buckets[-1][0]:
            self._add(buckets[-1], at, entry)
        else:
            position = bisect_left(buckets, index, key=_index)
            if buckets[position][0] == index:
                self._add(buckets[position], at, entry)
            else:
                buckets.insert(position, [index, [entry]])
        # (index + 1) × width <= newest − span, for whole numbers.
        floor = (newest - self.span) // self.width
        while buckets[0][0] < floor:
            del buckets[0]

    def _add(self, bucket: Bucket, at: int, entry: Entry) -> None:
        if len(bucket) > 2:
            bucket[1] = min(bucket[1], at)
            self._absorb(bucket[2], entry)
            if len(bucket) > 3:
                self._add_part(bucket[3], at, entry)
            return
        entries = bucket[1]
        if entry >= entries[-1]:
            entries.append(entry)
        else:
            insort(entries, entry)
        if len(entries) > WINDOW_BUCKET_ENTRIES_MAX:
            tally = self.tally_layout.start(entries[0])
            for single in entries[1:]:
                self._absorb(tally, single)
            bucket[1:] = [self.time_of(entries[0]), tally]
            if self.tally_layout.small:
                bucket.append([None] * PARTS)
                for single in entries:
                    self._add_part(bucket[3], self.time_of(single), single)

    def _add_part(self, parts: list[Tally | None], at: int, entry: Entry) -> None:
        part = at % self.width * PARTS // self.width
        tally = parts[part]
        if tally is None:
            parts[part] = self.tally_layout.start(entry)
        else:
            self.tally_layout.absorb(tally, entry)

    def merge(self, first: list[Bucket], second: list[Bucket], newest: int) -> list[Bucket]:
        """The buckets of both together; it may change and reuse them. ``newest`` is the newest time of the slot."""
        floor = (newest - self.span) // self.width
        merged: list[Bucket] = []
        for bucket in sorted((*first, *second), key=_index):
            if merged and merged[-1][0] == bucket[0]:
                self._join(merged[-1], bucket)
            elif bucket[0] >= floor:
                merged.append(bucket)
        return merged

    def _join(self, bucket: Bucket, other: Bucket) -> None:
        """Add what another bucket of the same index holds, in place."""
        if len(bucket) < len(other):
            bucket[1:], other[1:] = other[1:], bucket[1:]
        if len(other) == 2:
            for entry in other[1]:
                self._add(bucket, self.time_of(entry), entry)
            return
        bucket[1] = min(bucket[1], other[1])
        bucket[2] = self.tally_layout.total((bucket[2], other[2]))
        self._cap(bucket[2])
        if len(bucket) > 3:
            pairs = zip(bucket[3], other[3], strict=True)
            bucket[3] = [b if a is None else a if b is None else self.tally_layout.total((a, b)) for a, b in pairs]

    def _absorb(self, tally: Tally, entry: Entry) -> None:
        self.tally_layout.absorb(tally, entry)
        self._cap(tally)

    def _cap(self, tally: Tally) -> None:
        for at, cell in enumerate(self.tally_layout.cells):
            if cell.limited:
                # The smallest hashes stay, so the cap does not depend on any order.
                del tally[at][BUCKET_KEYS_MAX + 1 :]

    def time_of(self, entry: Entry) -> int:
        """The time of an entry, whatever its shape."""
        return int(entry if self.timed else entry[0])

    def cut(self, buckets: list[Bucket], window: int, now: int) -> tuple[int, int] | None:
        """The range whose single events a view at ``now`` needs: in a tallied bucket that the window cuts."""
        start = now - window
        index = start // self.width
        if start == index * self.width:
            return None
        position = bisect_left(buckets, index, key=_index)
        if position == len(buckets) or buckets[position][0] != index or len(buckets[position]) == 2:
            return None
        needed = self._parts_needed(buckets[position], start)
        return (start, min(self._part_starts(index, needed), now)) if needed else None

    def _parts_needed(self, bucket: Bucket, start: int) -> int:
        """Of how many parts of a tallied bucket single events are needed if only those from ``start`` on count.

        Up to the first part that surely has one, so that it is known which of them leaves first. 0: none has any.
        """
        if len(bucket) == 3:
            return PARTS
        parts = bucket[3]
        cut, within = divmod(start % self.width, self.width // PARTS)
        sure = next((at for at in range(cut + (within > 0), PARTS) if parts[at] is not None), None)
        if sure is not None:
            return sure + 1
        return cut + 1 if parts[cut] is not None else 0

    def _part_starts(self, index: int, part: int) -> int:
        return index * self.width + part * self.width // PARTS

    def leaving(self, buckets: list[Bucket], window: int, now: int) -> int | None:
        """When the first of what is in [now − window, now) occurred, None if nothing is.

        In a tallied bucket that the window cuts, events are not at hand: there it is the next step of 1/24 bucket.
        """
        start = now - window
        first = start // self.width
        for at in range(bisect_left(buckets, first, key=_index), len(buckets)):
            bucket = buckets[at]
            if len(bucket) == 2:
                for entry in bucket[1]:
                    if (time := self.time_of(entry)) >= start:
                        return time
            elif bucket[0] > first or start == first * self.width:
                return int(bucket[1])
            elif self._parts_needed(bucket, start):
                step = self.width // DUE_STEPS
                # A start on a step counts what occurred at it, which leaves a microsecond later.
                return -(-start // step) * step
        return None

    def gather(
        self, buckets: list[Bucket], window: int, now: int, cut_entries: Callable[[int, int], Iterable[Entry]]
    ) -> Gathered:
        """Everything in [now − window, now). ``cut_entries`` answers the entries of the range that `cut` names."""
        start = now - window
        first = start // self.width
        entries: list[Entry] = []
        tallies: list[Tally] = []
        leaves: list[int] = []
        for bucket in buckets[bisect_left(buckets, first, key=_index) :]:
            if len(bucket) == 2:
                stored = bucket[1]
                if bucket[0] == first and self.time_of(stored[0]) < start:
                    stored = [entry for entry in stored if self.time_of(entry) >= start]
                entries += stored
            elif bucket[0] > first or start == first * self.width:
                tallies.append(bucket[2])
                leaves.append(bucket[1])
            elif needed := self._parts_needed(bucket, start):
                entries += cut_entries(start, min(self._part_starts(first, needed), now))
                if needed < PARTS:
                    tallies += (part for part in bucket[3][needed:] if part is not None)
        if entries:
            leaves.append(min(entries if self.timed else map(_time, entries)))
        return Gathered(self._total(entries, tallies), min(leaves, default=None), self.tally_layout.capped(tallies))

    def _total(self, entries: list[Entry], tallies: list[Tally]) -> Tally | None:
        if entries:
            tallies = [self.tally_layout.of(entries), *tallies]
        return self.tally_layout.total(tallies) if tallies else None


_time = itemgetter(0)


def _index(bucket: Bucket) -> int:
    return int(bucket[0])
