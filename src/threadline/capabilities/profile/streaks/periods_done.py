"""Which periods are done: from the sets of a tally to the periods in which the person was active often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from threadline.capabilities.profile.streaks.day_ranges import Ranges, add, holds, pairs, union
from threadline.capabilities.profile.streaks.definition import Streak
from threadline.capabilities.profile.streaks.runs import Walk
from threadline.kernel.calendar import first_day, period_of

Sets = Sequence[Ranges]


class Done(NamedTuple):
    """What was done, by periods."""

    periods: Ranges
    """Those that are done."""
    progress: int
    """How much counts for the running one, at most as much as is asked for."""


def reckon_done(streak: Streak, sets: Sets, running: int, week_start: int, walk: Walk) -> Done:
    """Which periods of a streak are done, and how far the running one is. ``sets`` are those of its tally.

    ``walk`` is one that has not begun: with a grace, what is done depends on which run is alive.
    """
    if streak.grace:
        return _with_grace(streak, sets, running, week_start, walk)
    if streak.counting == "events":
        return Done(sets[streak.times - 1], sum(holds(level, running) for level in sets))
    if streak.cadence == "day":
        return Done(sets[0], int(holds(sets[0], running)))
    counted = _days_by_period(streak, sets[0], week_start)
    done = _ranges(sorted(period for period, days in counted.items() if days >= streak.times))
    return Done(done, min(counted[running], streak.times))


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


def _with_grace(streak: Streak, sets: Sets, running: int, week_start: int, walk: Walk) -> Done:
    """With a grace, what falls into the first hours of a period may count for the one before.

    It does where that lacks just this, and was begun, or a run would end with it. What is given away no
    longer counts for its own period; what came in those hours beyond it does.
    """
    own, early, spare = _counted_with_grace(streak, sets, week_start)
    done: Ranges = []
    given = 0
    """How much of the next period has been given to the one before it."""
    last, progress = None, 0
    for period in sorted({*own, *(number - 1 for number in early)}):
        if period - 1 != last:
            given = 0
        # A day that has other events as well loses nothing by giving an early one away.
        have = own[period] - max(given - spare[period], 0)
        lacking, given = streak.times - have, 0
        if 0 < lacking <= early[period + 1] and (have > 0 or walk.reaches(period)):
            given = lacking
        if lacking <= given:
            add(done, period)
            walk.enter(period, period)
        if period == running:
            progress = min(have, streak.times)
        last = period
    return Done(done, progress)


def _counted_with_grace(streak: Streak, sets: Sets, week_start: int) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """By period: how much counts for it; how much of that came early; how much of that is there a second time."""
    if streak.counting == "events":
        late, early = (_levels(part) for part in (sets[: streak.times], sets[streak.times :]))
        return late + early, early, Counter()
    own = _days_by_period(streak, union(*map(pairs, sets)), week_start)
    early, spare = Counter[int](), Counter[int]()
    _, *firsts = sets
    for first, last in pairs(firsts[0]):
        for day in range(first, last + 1):
            period = period_of(streak.cadence, day, week_start)
            if first_day(streak.cadence, period, week_start) == day:
                early[period] = 1
                spare[period] = int(holds(sets[0], day) or holds(firsts[1], day))
    return own, early, spare


def _levels(levels: Sets) -> Counter[int]:
    counted: Counter[int] = Counter()
    for level in levels:
        for first, last in pairs(level):
            counted.update(range(first, last + 1))
    return counted
