"""Which periods are done: from the sets of a tally to the periods in which the person was active often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from threadline.capabilities.streaks.civil import first_day, period_of
from threadline.capabilities.streaks.days import Ranges, add, holds, pairs, union
from threadline.capabilities.streaks.definition import Streak

Sets = Sequence[Ranges]


def done_periods(streak: Streak, sets: Sets, week_start: int) -> Ranges:
    """The periods of a streak that are done. ``sets`` are those of its tally."""
    if streak.grace:
        return _with_grace(streak, sets, week_start)
    if streak.counting == "events":
        return sets[streak.times - 1]
    if streak.cadence == "day":
        return sets[0]
    counted = _days_by_period(streak, sets[0], week_start)
    return _ranges(sorted(period for period, days in counted.items() if days >= streak.times))


def progress(streak: Streak, sets: Sets, period: int, week_start: int) -> int:
    """How often the person was active in one period, as far as that counts."""
    if streak.counting == "events":
        return min(sum(holds(each, period) for each in sets), streak.times)
    active = union(*map(pairs, sets))
    first, after = (first_day(streak.cadence, each, week_start) for each in (period, period + 1))
    return min(sum(holds(active, day) for day in range(first, after)), streak.times)


def _days_by_period(streak: Streak, active: Ranges, week_start: int) -> Counter[int]:
    counted: Counter[int] = Counter()
    for first, last in pairs(active):
        while first <= last:
            period = period_of(streak.cadence, first, week_start)
            after = min(first_day(streak.cadence, period + 1, week_start), last + 1)
            # At the end of time a period may have no next one.
            after = max(after, first + 1)
            counted[period] += after - first
            first = after
    return counted


def _ranges(periods: Sequence[int]) -> Ranges:
    ranges: Ranges = []
    for period in periods:
        add(ranges, period)
    return ranges


def _with_grace(streak: Streak, sets: Sets, week_start: int) -> Ranges:
    """With a grace, what falls into the first hours of a period may count for the one before.

    It does where that lacks just this, and was begun, or follows one that was done. What is given away no
    longer counts for its own period.
    """
    own, early, spare = _counted_with_grace(streak, sets, week_start)
    done: Ranges = []
    given = 0
    """How much of the next period has been given to the one before it."""
    last = None
    for period in sorted({*own, *(each - 1 for each in early)}):
        if period - 1 != last:
            given = 0
        # A day that has later events as well loses nothing by giving its early ones away.
        have = own[period] - max(given - spare[period], 0)
        lacking, given = streak.times - have, 0
        begun = own[period] > 0 or (bool(done) and done[-1] == period - 1)
        if 0 < lacking <= early[period + 1] and begun:
            given = lacking
        if lacking <= given:
            add(done, period)
        last = period
    return done


def _counted_with_grace(streak: Streak, sets: Sets, week_start: int) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """By period: how much counts for it; how much of that came early; how much of that is there a second time."""
    if streak.counting == "events":
        late, early = (_levels(each) for each in (sets[: streak.times], sets[streak.times :]))
        return late + early, early, Counter()
    own = _days_by_period(streak, union(*map(pairs, sets)), week_start)
    early, spare = Counter[int](), Counter[int]()
    for first, last in pairs(sets[1]):
        for day in range(first, last + 1):
            period = period_of(streak.cadence, day, week_start)
            if first_day(streak.cadence, period, week_start) == day:
                early[period] = 1
                spare[period] = int(holds(sets[0], day))
    return own, early, spare


def _levels(levels: Sets) -> Counter[int]:
    counted: Counter[int] = Counter()
    for level in levels:
        for first, last in pairs(level):
            counted.update(range(first, last + 1))
    return counted
