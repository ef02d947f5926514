"""A set of whole numbers, such as days, as a flat list of ranges: first, last, first, last, … in ascending order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

SPAN_MAX = 10_000
"""How far back from its largest number a set reaches: 27 years of days. What is older is forgotten, in any order."""

Ranges = list[int]


def add(ranges: Ranges, number: int) -> bool:
    """Put a number in; whether it is new. A set keeps `SPAN_MAX` numbers back from its largest."""
    if not ranges or number > ranges[-1]:
        if ranges and number == ranges[-1] + 1:
            ranges[-1] = number
        else:
            ranges += (number, number)
        if number - ranges[0] >= SPAN_MAX:
            forget(ranges, number - SPAN_MAX)
        return True
    if number == ranges[-1]:
        return False
    place = bisect_right(ranges, number)
    if place & 1 or (place and ranges[place - 1] == number) or ranges[-1] - number >= SPAN_MAX:
        return False
    after_left = place > 0 and ranges[place - 1] == number - 1
    before_right = ranges[place] == number + 1
    if after_left and before_right:
        del ranges[place - 1 : place + 1]
    elif after_left:
        ranges[place - 1] = number
    elif before_right:
        ranges[place] = number
    else:
        ranges[place:place] = (number, number)
    return True


def forget(ranges: Ranges, until: int) -> None:
    """Take out every number up to this one."""
    while ranges and ranges[1] <= until:
        del ranges[:2]
    if ranges:
        ranges[0] = max(ranges[0], until + 1)


def holds(ranges: Ranges, number: int) -> bool:
    """Whether a number is in the set."""
    place = bisect_right(ranges, number)
    return bool(place & 1) or (place > 0 and ranges[place - 1] == number)


def pairs(ranges: Ranges) -> Iterator[tuple[int, int]]:
    """The ranges as (first, last)."""
    return zip(ranges[::2], ranges[1::2], strict=True)


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """All ranges together, those that touch as one."""
    joined: Ranges = []
    for first, last in sorted(pair for each in sets for pair in each):
        if joined and first <= joined[-1] + 1:
            joined[-1] = max(joined[-1], last)
        else:
            joined += (first, last)
    return joined


def gaps(ranges: Ranges, first: int, last: int) -> Iterator[tuple[int, int]]:
    """What the set leaves out between two numbers, both included."""
    place = bisect_right(ranges, first) & ~1
    if place and ranges[place - 1] >= first:
        place -= 2
    while first <= last:
        if place >= len(ranges) or ranges[place] > last:
            yield first, last
            return
        if ranges[place] > first:
            yield first, ranges[place] - 1
        first = max(first, ranges[place + 1] + 1)
        place += 2
