"""The course of a streak: from days to periods that are done and to runs, with freezes spent in order and excuses."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import sub
from typing import NamedTuple

from threadline.capabilities.profile.streaks.day_ranges import Ranges, add, gaps, holds, pairs, union
from threadline.capabilities.profile.streaks.definition import Freezes, Streak
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


RUNS_SHOWN = 21
"""The run that may be alive, and those before it that are shown."""


class Run(NamedTuple):
    """Periods in a row: the first and the last that was done, how many were, how many were bridged by freezes."""

    first: int
    last: int
    length: int
    frozen: int


class Course(NamedTuple):
    """A whole life."""

    runs: list[Run]
    """The newest of them, in order; the last one may still go on."""
    longest: Run | None
    alive: bool
    """Whether the last run does."""
    balance: int
    """How many freezes there are now."""
    ends: int | None
    """The period whose end ends the run that is alive, if nothing more happens; None if none is alive."""


class _Freezes:
    """Freezes as they come and go, period by period."""

    def __init__(self, rules: Freezes, granted: Sequence[tuple[int, int]]) -> None:
        self.rules = rules
        self.balance = min(rules.start, rules.max)
        self._granted = granted
        self._next = 0

    def copy(self) -> _Freezes:
        """The same freezes, to be spent a second time."""
        other = _Freezes(self.rules, self._granted)
        other.balance, other._next = self.balance, self._next
        return other

    def spend(self, period: int) -> bool:
        """Spend one on a missed period; whether there was one."""
        self.grant(period)
        self.balance -= 1
        return self.balance >= 0

    def earn(self, before: int, after: int) -> None:
        """A run has grown."""
        if self.rules.every:
            self._take(after // self.rules.every - before // self.rules.every)

    def _take(self, count: int) -> None:
        self.balance = min(self.balance + count, self.rules.max)

    def grant(self, period: int) -> int | None:
        """Take what was granted up to a period; answers the period of the next grant."""
        while self._next < len(self._granted) and self._granted[self._next][0] <= period:
            self._take(self._granted[self._next][1])
            self._next += 1
        return self._granted[self._next][0] if self._next < len(self._granted) else None

    def bridge(self, missed: Iterator[tuple[int, int]]) -> int | None:
        """Spend freezes on missed periods, the earliest first; how many it took, None if they did not suffice."""
        spent = 0
        for first, last in missed:
            while first <= last:
                following = self.grant(first)
                if not self.balance:
                    return None
                reach = last + 1 if following is None else min(last + 1, following)
                count = min(self.balance, reach - first)
                self.balance -= count
                spent += count
                first += count
        return spent


class Walk:
    """A life gone through in order: each stretch of periods that are done is entered, after all that lie before it.

    Whatever lies between two of them was missed, unless it is ``excused``. ``granted`` are freezes given in a period,
    in order. Nothing is spent while no run is alive.
    """

    def __init__(self, excused: Ranges, rules: Freezes, granted: Sequence[tuple[int, int]]) -> None:
        self.excused = excused
        self.freezes = _Freezes(rules, granted)
        self.runs: list[Run] = []
        self.alive = False

    def enter(self, first: int, last: int) -> None:
        """Go on to periods that are done, both included."""
        self.go_on(first - 1)
        self.freezes.grant(first)
        if not self.alive:
            self.runs.append(Run(first, first - 1, 0, 0))
            self.alive = True
        run = self.runs[-1]
        length = run.length + last - first + 1
        self.freezes.earn(run.length, length)
        self.runs[-1] = run._replace(last=last, length=length)

    def go_on(self, until: int) -> None:
        """Spend what it takes to bridge what was missed up to a period; the run is over if that does not suffice."""
        if self.alive:
            run = self.runs[-1]
            spent = self.freezes.bridge(gaps(self.excused, run.last + 1, until))
            if spent is None:
                self.alive = False
            else:
                self.runs[-1] = run._replace(frozen=run.frozen + spent)

    def reaches(self, period: int) -> bool:
        """Whether a run is alive that comes as far as this period and loses something if it is missed."""
        if not self.alive or holds(self.excused, period):
            return False
        return self.freezes.copy().bridge(gaps(self.excused, self.runs[-1].last + 1, period - 1)) is not None


def run_course(
    done: Ranges, excused: Ranges, rules: Freezes, granted: Sequence[tuple[int, int]], closed: int, running: int
) -> Course:
    """The course of a life up to the period ``closed``, the last that can no longer be done.

    ``running`` is the period that it is now; during a grace the one before it can still be done as well. The rest is as
    a `Walk` has it.
    """
    if not rules.max:
        return _course_without_freezes(done, excused, closed)
    walk = Walk(excused, rules, granted)
    for first, last in pairs(done):
        walk.enter(first, last)
    walk.go_on(closed)
    runs, freezes = walk.runs, walk.freezes
    ends = _end(max(runs[-1].last, closed) + 1, freezes.copy(), excused) if walk.alive else None
    freezes.grant(max(running, done[-1] if done else running))
    longest = max(runs, key=lambda run: (run.length, run.last), default=None)
    return Course(runs[-RUNS_SHOWN:], longest, walk.alive, freezes.balance, ends)


def _course_without_freezes(done: Ranges, excused: Ranges, closed: int) -> Course:
    """The same where nothing but what is excused bridges what was missed: also of lives of thousands of runs."""
    firsts, lasts = done[::2], done[1::2]
    bridged = set[int]()
    for first, last in pairs(excused):
        index = bisect_left(lasts, first - 1)
        while index + 1 < len(firsts) and firsts[index + 1] <= last + 1:
            bridged.add(index)
            index += 1
    lengths = [length + 1 for length in map(sub, lasts, firsts)]
    for index in sorted(bridged, reverse=True):
        lengths[index] += lengths.pop(index + 1)
        lasts[index] = lasts.pop(index + 1)
        del firsts[index + 1]
    runs = list(map(Run, firsts[-RUNS_SHOWN:], lasts[-RUNS_SHOWN:], lengths[-RUNS_SHOWN:], repeat(0)))
    longest = max(zip(lengths, lasts, firsts, strict=True), default=None)
    alive = bool(runs) and not any(gaps(excused, lasts[-1] + 1, closed))
    ends = max(lasts[-1], closed) + 1 if alive else None
    while ends is not None and holds(excused, ends):
        ends += 1
    return Course(runs, longest and Run(longest[2], longest[1], longest[0], 0), alive, 0, ends)


def _end(period: int, freezes: _Freezes, excused: Ranges) -> int:
    """The first period from this one on that no freeze is left for, if none is done any more."""
    while holds(excused, period) or freezes.spend(period):
        period += 1
    return period
