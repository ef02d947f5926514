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
    index = bisect_right(ranges, number)
    if index & 1 or (index and ranges[index - 1] == number) or ranges[-1] - number >= SPAN_MAX:
        return False
    after_left = index > 0 and ranges[index - 1] == number - 1
    before_right = ranges[index] == number + 1
    if after_left and before_right:
        del ranges[index - 1 : index + 1]
    elif after_left:
        ranges[index - 1] = number
    elif before_right:
        ranges[index] = number
    else:
        ranges[index:index] = (number, number)
    return True


def forget(ranges: Ranges, until: int) -> None:
    """Take out every number up to this one."""
    while ranges and ranges[1] <= until:
        del ranges[:2]
    if ranges:
        ranges[0] = max(ranges[0], until + 1)


def holds(ranges: Ranges, number: int) -> bool:
    """Whether a number is in the set."""
    index = bisect_right(ranges, number)
    return bool(index & 1) or (index > 0 and ranges[index - 1] == number)


def pairs(ranges: Ranges) -> Iterator[tuple[int, int]]:
    """The ranges as (first, last)."""
    return zip(ranges[::2], ranges[1::2], strict=True)


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """All ranges together, those that touch as one."""
    joined: Ranges = []
    for first, last in sorted(pair for ranges in sets for pair in ranges):
        if joined and first <= joined[-1] + 1:
            joined[-1] = max(joined[-1], last)
        else:
            joined += (first, last)
    return joined


def gaps(ranges: Ranges, first: int, last: int) -> Iterator[tuple[int, int]]:
    """What the set leaves out between two numbers, both included."""
    index = bisect_right(ranges, first) & ~1
    if index and ranges[index - 1] >= first:
        index -= 2
    while first <= last:
        if index >= len(ranges) or ranges[index] > last:
            yield first, last
            return
        if ranges[index] > first:
            yield first, ranges[index] - 1
        first = max(first, ranges[index + 1] + 1)
        index += 2
