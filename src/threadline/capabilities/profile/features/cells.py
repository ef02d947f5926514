"""What a state keeps of many events: tallies of small cells, each of which can be merged in any order.

An *entry* is what one event hands to a slot, in one of these shapes, so that entries sort by time:

    time    t                      its time alone
    clock   [t, hour of the week]
    number  [t, units]
    money   [t, units, currency]
    scalar  [t, event id, value]
    key     [t, hash]

A *tally* is a list of cells, one per kind of cell that the features of the slot need. Absorbing an entry may change a
cell in place; merging never does, because a view must not change the state it reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import itemgetter
from typing import Any

from threadline.kernel.limits import DISTINCT_VALUES_MAX

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
