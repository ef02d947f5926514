"""What a state keeps of many events: tallies of small cells, and windows, which are series of such tallies.

An *entry* is what one event hands to a slot, in one of these shapes, so that entries sort by time:

    time    t                      its time alone
    clock   [t, hour of the week]
    number  [t, units]
    money   [t, units, currency]
    scalar  [t, event id, value]
    key     [t, hash]

A *tally* is a list of cells, one per kind of cell that the features of the slot need. Absorbing an entry may change a
cell in place; merging never does, because a view must not change the state it reads. Tallies merge in any order.

A *window* is a series of UTC-aligned buckets. A bucket is ``[index, [entry, …]]`` with at most
`WINDOW_BUCKET_ENTRIES_MAX` sorted entries, or ``[index, t of its first, tally]``. Which of the two depends on how many
entries it has had and never on their order. Where tallies are small, a third member holds those of the bucket's
`PARTS`, None for one without entries: of a bucket that a window cuts, a view then needs single events of an eighth or
two, and not of up to all. A bucket that ends at or before (newest − span) is dropped: since a view is asked only at
instants after the newest event, no window of the series can reach it any more.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import itemgetter
from typing import Any

from threadline.kernel.limits import DISTINCT_VALUES_MAX, WINDOW_BUCKET_ENTRIES_MAX
from threadline.kernel.time import DAY, HOUR

Entry = Any
Tally = list[Any]

CURRENCIES_MAX = 32
"""Currencies that one cell can tell apart. What is kept are the first in the alphabet, so that the cap does not depend
on any order, and one more: a cell that holds it has had too many."""
BUCKET_KEYS_MAX = 128
"""Different values that one window bucket counts exactly; its tally keeps one more hash, to tell full from over. 130
buckets must fit an item of the store."""

_SUM_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of cell. ``total`` merges one or more and leaves them alone."""

    start: Callable[[Entry], Any]
    absorb: Callable[[Any, Entry], Any]
    total: Callable[[Iterable[Any]], Any]
    limited: bool = False
    """A sorted list that the tally of a bucket cuts to `BUCKET_KEYS_MAX` and one more."""
    small: bool = False
    """One number."""
    together: Callable[[Sequence[Entry]], Any] | None = None
    """What absorbing them all one after the other comes to, at once; None: there is no shorter way."""


def add_units(total: int | str, units: int) -> int | str:
    """The sum; as text where it outgrows 64 bits, which MessagePack cannot hold as a number."""
    result = int(total) + units
    return result if -_SUM_MAX <= result <= _SUM_MAX else str(result)


def add_key(keys: list[int], key: int) -> list[int]:
    """Insert a hash into a sorted list that keeps the smallest; changes and answers the list."""
    at = bisect_left(keys, key)
    if at == len(keys):
        if at <= DISTINCT_VALUES_MAX:
            keys.append(key)
    elif keys[at] != key:
        keys.insert(at, key)
        del keys[DISTINCT_VALUES_MAX + 1 :]
    return keys


def add_money(amounts: dict[str, list[Any]], units: int, currency: str) -> dict[str, list[Any]]:
    """Count and sum per currency; changes and answers the dict."""
    cell = amounts.get(currency)
    if cell is None:
        amounts[currency] = [1, units]
        return _capped(amounts)
    cell[0] += 1
    cell[1] = add_units(cell[1], units)
    return amounts


def add_range(ranges: dict[str, list[int]], units: int, currency: str) -> dict[str, list[int]]:
    """Smallest and largest per currency; changes and answers the dict."""
    cell = ranges.get(currency)
    if cell is None:
        ranges[currency] = [units, units]
        return _capped(ranges)
    cell[0] = min(cell[0], units)
    cell[1] = max(cell[1], units)
    return ranges


def _capped(by_currency: dict[str, list[Any]]) -> dict[str, list[Any]]:
    # A code that is pushed out has 33 smaller ones before it and can therefore never come back.
    if len(by_currency) > CURRENCIES_MAX + 1:
        del by_currency[max(by_currency)]
    return by_currency


def _add_at(counts: list[int], index: int) -> list[int]:
    counts[index] += 1
    return counts


def started(size: int, index: int) -> list[int]:
    """So many counts, of which one counts one."""
    return _add_at([0] * size, index)


def _add_lists(first: list[int], second: list[int]) -> list[int]:
    return [a + b for a, b in zip(first, second, strict=True)]


def _merge_keys(first: list[int], second: list[int]) -> list[int]:
    return sorted({*first, *second})[: DISTINCT_VALUES_MAX + 1]


def _merge_by_currency(join: Callable[[list[Any], list[Any]], list[Any]]) -> Callable[[Iterable[Any]], Any]:
    def merge(first: dict[str, list[Any]], second: dict[str, list[Any]]) -> dict[str, list[Any]]:
        merged = {code: list(cell) for code, cell in first.items()}
        for code, cell in second.items():
            merged[code] = join(merged[code], cell) if code in merged else list(cell)
        return {code: merged[code] for code in sorted(merged)[: CURRENCIES_MAX + 1]}

    return partial(reduce, merge)


_second = itemgetter(1)

CELLS: Mapping[str, Cell] = {
    "n": Cell(lambda e: 1, lambda c, e: c + 1, sum, small=True, together=len),
    "sum": Cell(
        lambda e: e[1],
        lambda c, e: add_units(c, e[1]),
        lambda cell: add_units(sum(map(int, cell)), 0),
        small=True,
        together=lambda es: add_units(sum(map(_second, es)), 0),
    ),
    "min": Cell(lambda e: e[1], lambda c, e: min(c, e[1]), min, small=True, together=lambda es: min(map(_second, es))),
    "max": Cell(lambda e: e[1], lambda c, e: max(c, e[1]), max, small=True, together=lambda es: max(map(_second, es))),
    # Entries of one slot differ in their event id at the latest, so values are never compared.
    "first": Cell(lambda e: e, min, min, together=min),
    "last": Cell(lambda e: e, max, max, together=max),
    "keys": Cell(lambda e: [e[1]], lambda c, e: add_key(c, e[1]), partial(reduce, _merge_keys), limited=True),
    "hours": Cell(lambda e: started(24, e[1] % 24), lambda c, e: _add_at(c, e[1] % 24), partial(reduce, _add_lists)),
    "days": Cell(lambda e: started(7, e[1] // 24), lambda c, e: _add_at(c, e[1] // 24), partial(reduce, _add_lists)),
    "money": Cell(
        lambda e: {e[2]: [1, e[1]]},
        lambda c, e: add_money(c, e[1], e[2]),
        _merge_by_currency(lambda a, b: [a[0] + b[0], add_units(a[1], int(b[1]))]),
    ),
    "range": Cell(
        lambda e: {e[2]: [e[1], e[1]]},
        lambda c, e: add_range(c, e[1], e[2]),
        _merge_by_currency(lambda a, b: [min(a[0], b[0]), max(a[1], b[1])]),
    ),
}


@dataclass(frozen=True, slots=True)
class TallyLayout:
    """The cells of one slot, in their order, as operations on whole tallies."""

    cells: tuple[Cell, ...]

    @property
    def small(self) -> bool:
        """Whether a tally is a few numbers."""
        return all(cell.small for cell in self.cells)

    def start(self, entry: Entry) -> Tally:
        """The tally of one entry."""
        return [cell.start(entry) for cell in self.cells]

    def of(self, entries: Sequence[Entry]) -> Tally:
        """The tally of these entries, at least one."""
        return [_of(cell, entries) for cell in self.cells]

    def absorb(self, tally: Tally, entry: Entry) -> None:
        """Add one entry to a tally, in place."""
        for at, cell in enumerate(self.cells):
            tally[at] = cell.absorb(tally[at], entry)

    def total(self, tallies: Sequence[Tally]) -> Tally:
        """A new tally of all of these, at least one."""
        return [cell.total(tally) for cell, tally in zip(self.cells, zip(*tallies, strict=True), strict=True)]

    def capped(self, tallies: Iterable[Tally]) -> bool:
        """Whether one of these, the tallies of buckets, has had more different values than it keeps."""
        limited = [at for at, cell in enumerate(self.cells) if cell.limited]
        return bool(limited) and any(len(tally[at]) > BUCKET_KEYS_MAX for tally in tallies for at in limited)


def _of(cell: Cell, entries: Sequence[Entry]) -> Any:
    if cell.together is not None:
        return cell.together(entries)
    first, *others = entries
    return reduce(cell.absorb, others, cell.start(first))


@lru_cache(maxsize=1_024)
def tally_layout(names: tuple[str, ...]) -> TallyLayout:
    """The layout of these cells."""
    return TallyLayout(tuple(CELLS[name] for name in names))


# --- windows ---------------------------------------------------------------------------------------

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
