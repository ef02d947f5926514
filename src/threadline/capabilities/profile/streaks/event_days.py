"""Which days a person's events count for: in the window, in what is settled, and one event at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadline.capabilities.profile.streaks import day_ranges
from threadline.capabilities.profile.streaks.fold import fold
from threadline.capabilities.profile.streaks.plan import Plan, TallyColumns, is_alone
from threadline.capabilities.profile.streaks.settled_days import add_to_levels, counted, levels
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
from threadline.kernel.calendar import local_day, period_of
from threadline.kernel.event import Recorded
from threadline.kernel.time import HOUR
from threadline.kernel.zones import zone_named

_NEVER = 1 << 32
"""The block number before anything is settled."""


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
