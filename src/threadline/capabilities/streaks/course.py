"""The course of a streak: from the periods that are done to runs, with freezes spent in order and what is excused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from threadline.capabilities.streaks.days import Ranges, gaps, holds, pairs
from threadline.capabilities.streaks.definition import Freezes


class Run(NamedTuple):
    """Periods in a row: the first and the last that was done, how many were, how many were bridged by freezes."""

    first: int
    last: int
    length: int
    frozen: int


class Course(NamedTuple):
    """A whole life."""

    runs: list[Run]
    """In order; the last one may still go on."""
    alive: bool
    """Whether the last run does."""
    held: int
    """Freezes held now."""
    ends: int | None
    """The period whose end ends the run that is alive, if nothing more happens; None if none is alive."""


class _Freezes:
    """Freezes as they come and go, period by period."""

    def __init__(self, rules: Freezes, granted: Sequence[tuple[int, int]]) -> None:
        self.rules = rules
        self.held = min(rules.start, rules.max)
        self._granted = granted
        self._next = 0

    def copy(self) -> _Freezes:
        """The same freezes, to be spent a second time."""
        other = _Freezes(self.rules, self._granted)
        other.held, other._next = self.held, self._next
        return other

    def spend(self, period: int) -> bool:
        """Spend one on a missed period; whether one was held."""
        self.grant(period)
        self.held -= 1
        return self.held >= 0

    def earn(self, before: int, after: int) -> None:
        """A run has grown."""
        if self.rules.every:
            self._take(after // self.rules.every - before // self.rules.every)

    def _take(self, count: int) -> None:
        self.held = min(self.held + count, self.rules.max)

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
                if not self.held:
                    return None
                reach = last + 1 if following is None else min(last + 1, following)
                count = min(self.held, reach - first)
                self.held -= count
                spent += count
                first += count
        return spent


def run_course(
    done: Ranges, excused: Ranges, rules: Freezes, granted: Sequence[tuple[int, int]], closed: int, running: int
) -> Course:
    """The course of a life up to the period ``closed``, the last that can no longer be done.

    ``running`` is the period that it is now; during a grace the one before it can still be done as well. Whatever lies
    between two periods that are done was missed, unless it is ``excused``. ``granted`` are freezes given in a period,
    in order. Nothing is spent while no run is alive.
    """
    freezes = _Freezes(rules, granted)
    runs: list[Run] = []
    alive = False
    for first, last in pairs(done):
        if alive:
            alive = _go_on(runs, freezes, excused, first - 1)
        freezes.grant(first)
        if not alive:
            runs.append(Run(first, first - 1, 0, 0))
            alive = True
        run = runs[-1]
        length = run.length + last - first + 1
        freezes.earn(run.length, length)
        runs[-1] = run._replace(last=last, length=length)
    if alive:
        alive = _go_on(runs, freezes, excused, closed)
    following = max(runs[-1].last, closed) + 1 if alive else 0
    ends = _end(following, freezes.copy(), excused) if alive else None
    freezes.grant(max(running, done[-1] if done else running))
    return Course(runs, alive, freezes.held, ends)


def _go_on(runs: list[Run], freezes: _Freezes, excused: Ranges, until: int) -> bool:
    """Whether the last run outlives what was missed up to a period, with the freezes that this takes."""
    run = runs[-1]
    spent = freezes.bridge(gaps(excused, run.last + 1, until))
    if spent is None:
        return False
    runs[-1] = run._replace(frozen=run.frozen + spent)
    return True


def _end(period: int, freezes: _Freezes, excused: Ranges) -> int:
    """The first period from this one on that no freeze is left for, if none is done any more."""
    while holds(excused, period) or freezes.spend(period):
        period += 1
    return period
