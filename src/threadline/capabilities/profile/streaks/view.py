"""What a state says at an instant: each streak as it stands, what it has been, and when it would end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.profile.streaks import day_ranges
from threadline.capabilities.profile.streaks.day_ranges import Ranges, holds, pairs, union
from threadline.capabilities.profile.streaks.definition import Streak
from threadline.capabilities.profile.streaks.fold import add_to_levels, counted, fold, levels
from threadline.capabilities.profile.streaks.grants import AMNESTY, FREEZES, MILESTONES, UNDATED
from threadline.capabilities.profile.streaks.plan import Plan, TallyColumns, is_alone
from threadline.capabilities.profile.streaks.runs import RUNS_SHOWN, Course, Run, Walk, reckon_done, run_course
from threadline.capabilities.profile.streaks.state import (
    BARE,
    CHANGES,
    DAYS_PER_PART,
    FIRST,
    FIRST_DAY,
    HEAD,
    NAMED,
    QUARTER,
    RECORD_SIZE,
    UNNAMED,
    State,
)
from threadline.capabilities.profile.streaks.whereabouts import Dated, Journey
from threadline.kernel.calendar import (
    day_begins,
    day_text,
    days_left_out,
    first_day,
    local_day,
    period_of,
    zone_named,
)
from threadline.kernel.event import Recorded
from threadline.kernel.time import HOUR, LATEST, format_time

_NEVER = 1 << 32
"""The block number before anything is settled."""


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


# --- the days that events count for: in the window, in what is settled, and one event at a time ----


def journey_before(plan: Plan, state: State) -> Journey:
    """Where the person was when the window began."""
    head = state.get(HEAD) or [0, [], [], [], 0]
    parts = [[*part] for part in head[CHANGES:UNNAMED]]
    return Journey(plan.calendar.timezone, plan.day_start, len(plan.sources), *parts)


def dated_window(plan: Plan, state: State) -> tuple[Journey, list[Dated]]:
    """The journey up to the newest event, and what the events of the window count for."""
    journey = journey_before(plan, state)
    return journey, list(journey.go(state.get(NAMED, {}), state.get(BARE, ())))


def sets_of_life(plan: Plan, state: State) -> tuple[Journey, dict[str, list[day_ranges.Ranges]]]:
    """The journey up to the newest event, and of each tally, by its part, the sets of all the person's life."""
    journey = journey_before(plan, state)
    named, bare = state.get(NAMED, {}), state.get(BARE, ())
    stays, window = journey.stays(named, bare), list[Dated]()
    if not stays or plan.others:
        window = list(journey.go(named, bare))
    by_part = {}
    for tally in plan.tallies:
        settled = state.get(tally.part)
        by_part[tally.part] = [[*level] for level in settled] if settled else [[] for _ in range(tally.tally.sets)]
    for part, column in plan.of_days:
        travelled = sorted({dated.day for dated in window if dated.counts[column]})
        _add_days(by_part[part][0], journey.days(named, bare, column) if stays else travelled)
    for other in plan.others:
        _count_in(plan, by_part[other.part], other, window)
    if stays:
        journey.arrive(named)
    return journey, by_part


def _add_days(ranges: day_ranges.Ranges, numbers: Iterable[int]) -> None:
    """Put days into a set, in ascending order."""
    for number in numbers:
        if ranges and number == ranges[-1] + 1:
            ranges[-1] = number
        elif not ranges or number > ranges[-1]:
            ranges += (number, number)
        else:
            day_ranges.add(ranges, number)
    if ranges:
        day_ranges.forget(ranges, ranges[-1] - day_ranges.SPAN_MAX)


def _count_in(plan: Plan, sets: list[day_ranges.Ranges], columns: TallyColumns, window: Iterable[Dated]) -> None:
    tally, week_start = columns.tally, plan.calendar.week_start
    units: dict[int, list[int]] = {}
    for dated in window:
        own, early = counted(plan, columns, dated)
        if own or early:
            unit = units.setdefault(period_of(tally.unit, dated.day, week_start), [0, 0])
            unit[0] += own
            unit[1] += early
    for number in sorted(units):
        for index, times in enumerate(units[number]):
            if times:
                add_to_levels(levels(sets, tally, bool(index)), number, times)


def day_records(plan: Plan, state: State, since: int, until: int) -> Iterator[tuple[int, int, int]]:
    """(day, first instant, events) of the days from one to another on which the person was active."""
    by_day: dict[int, tuple[int, int]] = {}
    for number in range(since // DAYS_PER_PART, until // DAYS_PER_PART + 1):
        records = state.get(f"d{number}", [])
        by_day |= {records[n]: (records[n + 1], records[n + 2]) for n in range(0, len(records), RECORD_SIZE)}
    for dated in dated_window(plan, state)[1]:
        if dated.counts[0]:
            first, events = by_day.get(dated.day, (dated.first, 0))
            by_day[dated.day] = min(first, dated.first), events + dated.counts[0]
    return ((day, *by_day[day]) for day in sorted(by_day) if since <= day <= until)


def days_of(plan: Plan, journey: Journey, events: Iterable[Recorded]) -> dict[str, int]:
    """The days for which the events of a stretch of time count, by id."""
    counting = [recorded for recorded in events if plan.counts(recorded.event)]
    start = min((recorded.event.occurred_at for recorded in counting), default=0)
    changes = [*journey.changes]
    while changes and changes[-1] >= start:
        del changes[-2:]
    candidate: State = {HEAD: [_NEVER, changes, [], [], 0], NAMED: {}}
    for recorded in counting:
        fold(plan, candidate, recorded)
    _, window = dated_window(plan, candidate)
    slots = {dated.first: dated.day for dated in window if dated.into >= 0}
    deferred = {dated.first: dated.day for dated in window if dated.into < 0 and dated.deferred}
    return {recorded.id: _day(plan, candidate, slots, deferred, recorded) for recorded in counting}


def _day(plan: Plan, candidate: State, slots: dict[int, int], deferred: dict[int, int], recorded: Recorded) -> int:
    event = recorded.event
    at, zone = event.occurred_at, zone_named(event.context.get("timezone"))
    if zone is None and not is_alone(recorded):
        into = at - plan.day_start
        # On a day with many quarters only hours are distinguished.
        quarter, hour = at - into % QUARTER, at - into % HOUR
        return slots[quarter] if quarter in slots else slots[hour]
    day = local_day(zone or plan.calendar.timezone, at, plan.day_start)
    if is_alone(recorded):
        return day
    firsts = {
        name: group[FIRST] for name, groups in candidate[NAMED].items() for group in groups if group[FIRST_DAY] == day
    }
    # The events of zones that are not distinguished count with the last one that is.
    return deferred.get(firsts[zone if zone in firsts else max(firsts)], day)
