"""What is settled: of days that no event in time can change any more there are records, and the sets of each tally."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter

from threadline.capabilities.profile.streaks import day_ranges
from threadline.capabilities.profile.streaks.definition import Tally
from threadline.capabilities.profile.streaks.plan import Columns, Plan, TallyColumns
from threadline.capabilities.profile.streaks.state import (
    BARE,
    BLOCK,
    BLOCK_DAYS,
    CHANGES,
    DAYS_PER_PART,
    FIRST_DAY,
    HEAD,
    NAMED,
    RECORD_SIZE,
    RECORDED_PARTS_MAX,
    UNNAMED,
    Group,
    State,
)
from threadline.capabilities.profile.streaks.whereabouts import Dated, Journey
from threadline.kernel.calendar import day_offset, offset, period_of
from threadline.kernel.event import Event
from threadline.kernel.time import DAY
from threadline.kernel.zones import zone_named

_day_of = itemgetter(FIRST_DAY)


def settle_before(plan: Plan, state: State, block: int) -> None:
    """Settle what lies before a block, with which the window begins from now on."""
    head, named = state[HEAD], state[NAMED]
    head[BLOCK] = block
    start = block * BLOCK_DAYS
    gone: dict[str, list[Group]] = {}
    for zone, groups in [*named.items()]:
        if groups[0][FIRST_DAY] < start:
            cut = bisect_left(groups, start, key=_day_of)
            gone[zone] = groups[:cut]
            del groups[:cut]
            if not groups:
                del named[zone]
    bare: list[Group] = state.get(BARE, [])
    cut = bisect_left(bare, start, key=_day_of)
    gone_bare = bare[:cut]
    if gone_bare:
        head[UNNAMED] = 1
        del bare[:cut]
        if not bare:
            del state[BARE]
    if gone or gone_bare:
        journey = Journey(plan.calendar.timezone, plan.day_start, len(plan.sources), *head[CHANGES:UNNAMED])
        for dated in journey.go(gone, gone_bare):
            _settle(plan, state, *dated)


def settle_alone(plan: Plan, columns: Columns, state: State, event: Event) -> bool:
    """Settle an event that became known too late to say where the person was: its own zone decides, or the default.

    Answers whether anybody sees a difference.
    """
    at = event.occurred_at
    zone = zone_named(event.context.get("timezone")) or plan.calendar.timezone
    ahead = day_offset(zone, at // DAY)
    day, into = divmod(at + (offset(zone, at) if ahead is None else ahead) - plan.day_start, DAY)
    return _settle(plan, state, day, at, columns.once, into)


def _settle(
    plan: Plan, state: State, day: int, first: int, counts: Sequence[int], into: int = -1, deferred: bool = False
) -> bool:
    """Put what counts for a day, see `Dated`, into its record and into the sets; answers whether a set has changed."""
    if counts[0]:
        _note(state, day, first, counts[0])
    shows = False
    for part, column in plan.of_days:
        if counts[column]:
            sets = state.get(part)
            if sets is None:
                sets = state[part] = [[]]
            shows |= day_ranges.add(sets[0], day)
    for other in plan.others:
        for early, times in enumerate(counted(plan, other, Dated(day, first, counts, into, deferred))):
            if times:
                sets = state.get(other.part)
                if sets is None:
                    sets = state[other.part] = [[] for _ in range(other.tally.sets)]
                unit = period_of(other.tally.unit, day, plan.calendar.week_start)
                shows |= add_to_levels(levels(sets, other.tally, bool(early)), unit, times)
    return shows


def counted(plan: Plan, columns: TallyColumns, dated: Dated) -> tuple[int, int]:
    """How many events of a day count for a tally: those after its first hours, and those within."""
    every = dated.counts[columns.column]
    if columns.early < 0 or dated.deferred:
        return every, 0
    if dated.into >= 0:  # a slot
        return (0, every) if plan.is_early(columns.tally, dated.day, dated.into) else (every, 0)
    early = dated.counts[columns.early]
    return every - early, early


def levels(sets: list[day_ranges.Ranges], tally: Tally, early: bool) -> list[day_ranges.Ranges]:
    """The sets of a tally for what came in the first hours of a unit, or for the rest."""
    return sets[tally.levels :] if early else sets[: tally.levels]


def add_to_levels(chosen: list[day_ranges.Ranges], unit: int, times: int) -> bool:
    """Count a unit so many times; answers whether a set has changed. Level n holds what was counted n times or more."""
    if chosen[0] and chosen[0][-1] - unit >= day_ranges.SPAN_MAX:
        return False
    shows = False
    for level in chosen:
        if times and day_ranges.add(level, unit):
            times -= 1
            shows = True
    # What is too old for the first level is too old for all of them, whenever they were reached.
    for level in chosen[1:]:
        day_ranges.forget(level, chosen[0][-1] - day_ranges.SPAN_MAX)
    return shows


# --- records --------------------------------------------------------------------------------------


def _note(state: State, day: int, at: int, events: int) -> None:
    """Count events in their day's record."""
    number = day // DAYS_PER_PART
    records = state.get(f"d{number}")
    if records is None:
        records = _new_part(state, number)
        if records is None:
            return
    position = len(records) - RECORD_SIZE
    while position >= 0 and records[position] > day:
        position -= RECORD_SIZE
    if position >= 0 and records[position] == day:
        records[position + 2] += events
        records[position + 1] = min(records[position + 1], at)
    else:
        position += RECORD_SIZE
        records[position:position] = (day, at, events)


def _new_part(state: State, number: int) -> list[int] | None:
    """A part for records of these 32 days; None if they are too far back to be recorded."""
    numbers = recorded_parts(state)
    if number <= max(numbers, default=number) - RECORDED_PARTS_MAX:
        return None
    forget_parts(state, [*numbers, number])
    records: list[int] = []
    state[f"d{number}"] = records
    return records


def recorded_parts(state: State) -> list[int]:
    """The numbers of the parts that records of 32 days are in."""
    return [int(name[1:]) for name in state if name[0] == "d"]


def forget_parts(state: State, numbers: Iterable[int]) -> None:
    """Take out the parts that are too far back from the newest of these."""
    oldest = max(numbers, default=0) - RECORDED_PARTS_MAX + 1
    for number in recorded_parts(state):
        if number < oldest:
            del state[f"d{number}"]
