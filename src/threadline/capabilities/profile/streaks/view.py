"""What a state says at an instant: each streak as it stands, what it has been, and when it would end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.profile.streaks.day_ranges import Ranges, holds, pairs, union
from threadline.capabilities.profile.streaks.definition import Streak
from threadline.capabilities.profile.streaks.event_days import dated_window, sets_of_life
from threadline.capabilities.profile.streaks.grants import AMNESTY, FREEZES, MILESTONES, UNDATED
from threadline.capabilities.profile.streaks.periods_done import reckon_done
from threadline.capabilities.profile.streaks.plan import Plan
from threadline.capabilities.profile.streaks.runs import RUNS_SHOWN, Course, Run, Walk, run_course
from threadline.capabilities.profile.streaks.state import State
from threadline.capabilities.profile.streaks.whereabouts import Journey
from threadline.kernel.calendar import (
    day_begins,
    day_text,
    days_left_out,
    first_day,
    local_day,
    period_of,
)
from threadline.kernel.event import Recorded
from threadline.kernel.time import LATEST, format_time

_BEFORE_ALL, _AFTER_ALL = -(10**7), 10**7


class Standing(NamedTuple):
    """How one streak stands at an instant."""

    course: Course
    sets: list[Ranges]
    running: int
    """The period of the instant."""
    progress: int
    """How much of what is asked for was done in it."""
    settled: bool
    """Whether everything up to the running period is done or excused, the running one included."""
    to_come: bool
    """Whether a freeze was granted on a day that has not begun where the person is."""

    @property
    def current(self) -> int:
        """How many periods in a row are done now."""
        return self.course.runs[-1].length if self.course.alive else 0


class Life(NamedTuple):
    """What a state says of a person up to their newest event."""

    state: State
    journey: Journey
    sets: dict[str, list[Ranges]]
    """The sets of each tally, by the part that holds what is settled of it."""


class Reader:
    """Reads states under one set of declarations."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.calendar = plan.calendar

    def view(self, state: State, now: int, edges: Sequence[Recorded] = ()) -> dict[str, Any]:
        """Every streak by name."""
        life = self.life(state)
        return {streak.name: self._shown(streak, life, now) for streak in self.plan.streaks.streaks}

    def life(self, state: State) -> Life:
        """What a state says up to the newest event."""
        return Life(state, *sets_of_life(self.plan, state))

    def due(self, state: State, now: int) -> int | None:
        """The next instant at which a streak changes by time alone: while something can end, at the ends of periods."""
        life = self.life(state)
        zone = life.journey.zone_at(now)
        instants = []
        for streak in self.plan.streaks.streaks:
            standing = self.standing(streak, life, now)
            running = standing.running
            if standing.current or standing.progress or standing.to_come:
                ends = (self._ends(streak, zone, period, late) for period in (running - 1, running) for late in (0, 1))
                instants += [at for at in ends if now < at < LATEST]
        return min(instants, default=None)

    def feeds(self, path: tuple[str, ...]) -> frozenset[str] | None:
        """None: any event may change any part, since it may change the zone; no type where there is no such part."""
        streak = self.plan.streaks.by_name.get(path[0])
        known = streak is not None and (len(path) < 2 or path[1] in self._shown(streak, self.life({}), 0))
        return None if known else frozenset()

    def zone(self, state: State, now: int) -> str:
        """The zone in which the person is, as far as is known."""
        return dated_window(self.plan, state)[0].zone_at(now)

    def today(self, state: State, now: int) -> int:
        """The local day at an instant."""
        return local_day(self.zone(state, now), now, self.calendar.day_start)

    def standing(self, streak: Streak, life: Life, now: int) -> Standing:
        """How a streak stands."""
        zone, week_start = life.journey.zone_at(now), self.calendar.week_start
        sets = life.sets[self.plan.streaks.parts[streak.name][0]]
        excused = self._excused(streak, life)
        running = self._running(streak, zone, now)
        granted = self._granted(streak, life)
        done, progress = reckon_done(streak, sets, running, week_start, Walk(excused, streak.freezes, granted))
        closed = running - 1 if now >= self._ends(streak, zone, running - 1, 1) else running - 2
        course = run_course(done, excused, streak.freezes, granted, closed, running)
        open_periods = range(closed + 1, running + 1)
        settled = all(holds(done, period) or holds(excused, period) for period in open_periods)
        to_come = bool(granted) and granted[-1][0] > running
        return Standing(course, sets, running, progress, settled, to_come)

    def _running(self, streak: Streak, zone: str, now: int) -> int:
        today = local_day(zone, now, self.calendar.day_start)
        return period_of(streak.cadence, today, self.calendar.week_start)

    def _ends(self, streak: Streak, zone: str, period: int, late: int) -> int:
        """When a period is over; with ``late`` when its grace is, by the clock on the wall."""
        following = first_day(streak.cadence, period + 1, self.calendar.week_start)
        return day_begins(zone, following, self.calendar.day_start + (streak.grace if late else 0))

    def _granted(self, streak: Streak, life: Life) -> list[tuple[int, int]]:
        """Freezes that were granted, each with the period of its local day."""
        calendar, names = self.calendar, ("", streak.name)
        known = [pair for name in names for pair in pairs(life.state.get(FREEZES, {}).get(name, []))]
        undated = life.state.get(UNDATED, {})
        for name in names:
            for at, count in pairs(undated.get(name, [])):
                known.append((local_day(life.journey.zone_at(at), at, calendar.day_start), count))
        return sorted((period_of(streak.cadence, day, calendar.week_start), count) for day, count in known)

    def _excused(self, streak: Streak, life: Life) -> Ranges:
        """The periods that nobody could be asked to do."""
        forgiven = life.state.get(AMNESTY, {})
        declared = (
            (amnesty.first, amnesty.last)
            for amnesty in self.calendar.amnesty
            if not amnesty.streaks or streak.name in amnesty.streaks
        )
        granted = (pairs(forgiven.get(name, [])) for name in ("", streak.name))
        leaps = ((day, day) for day in (*life.journey.leaps, *self._left_out(life.journey.changes)))
        excused = union(declared, *granted, leaps)
        return excused if streak.cadence == "day" else self._excused_periods(streak, excused)

    def _left_out(self, changes: Sequence[Any]) -> Iterator[int]:
        """Days that the zones in which the person was have never had."""
        calendar = self.calendar
        zones = [calendar.timezone, *changes[::2]]
        bounds = [
            _BEFORE_ALL,
            *(local_day(zone, at, calendar.day_start) for zone, at in zip(zones[1:], changes[1::2], strict=True)),
            _AFTER_ALL,
        ]
        for index, zone in enumerate(zones):
            for day in days_left_out(zone, calendar.day_start):
                if bounds[index] <= day < bounds[index + 1]:
                    yield day

    def _excused_periods(self, streak: Streak, excused: Ranges) -> Ranges:
        """Weeks or months with too few days left to be done in."""
        week_start = self.calendar.week_start
        needed = streak.times if streak.counting == "days" else 1
        lost: dict[int, int] = {}
        for first, last in pairs(excused):
            for day in range(first, last + 1):
                period = period_of(streak.cadence, day, week_start)
                lost[period] = lost.get(period, 0) + 1
        ranges = []
        for period, days in lost.items():
            length = first_day(streak.cadence, period + 1, week_start) - first_day(streak.cadence, period, week_start)
            if length - days < needed:
                ranges.append((period, period))
        return union(ranges)

    # --- as it is shown -----------------------------------------------------------------------

    def _shown(self, streak: Streak, life: Life, now: int) -> dict[str, Any]:
        standing = self.standing(streak, life, now)
        course, current = standing.course, standing.current
        longest = course.longest
        expires_at = None
        if course.ends is not None and current:
            at = self._ends(streak, life.journey.zone_at(now), course.ends, 1)
            expires_at = format_time(min(at, LATEST))
        sets = standing.sets
        ended = course.runs[:-1] if course.alive else course.runs
        active = [ranges[-1] for ranges in sets if ranges]
        return {
            "current": current,
            "longest": longest.length if longest else 0,
            "at_risk": bool(current) and not standing.settled,
            "expires_at": expires_at,
            "last_active_on": self._last_active(streak, max(active)) if active else None,
            "progress": standing.progress,
            "times": streak.times,
            "cadence": streak.cadence,
            "freezes": course.balance,
            "run": self._run(streak, course.runs[-1]) if course.alive else None,
            "longest_run": self._run(streak, longest) if longest else None,
            "history": [self._run(streak, run) for run in reversed(ended[1 - RUNS_SHOWN :])],
            "milestones": self._milestones(streak, life.state),
        }

    def _last_active(self, streak: Streak, newest: int) -> str:
        # What is counted by periods knows of no single day; its period's first day stands for it.
        unit = "day" if streak.counting == "days" else streak.cadence
        return day_text(first_day(unit, newest, self.calendar.week_start))

    def _run(self, streak: Streak, run: Run) -> dict[str, Any]:
        week_start = self.calendar.week_start
        return {
            "from": day_text(first_day(streak.cadence, run.first, week_start)),
            "to": day_text(first_day(streak.cadence, run.last + 1, week_start) - 1),
            "length": run.length,
            "frozen": run.frozen,
        }

    def _milestones(self, streak: Streak, state: State) -> list[dict[str, Any]]:
        lengths = state.get(MILESTONES, {}).get(streak.name, {})
        return [{"length": int(length), "day": day_text(lengths[length])} for length in sorted(lengths, key=int)]
