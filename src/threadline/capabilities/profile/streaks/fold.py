"""The fold: an event that counts goes into the window, or is settled at once; in time the window is settled as well.

Which day an event counts for is found out when somebody looks, or when the window has moved on and no event that comes
in time can change it any more. So a late event costs no more than another, see `whereabouts`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from threadline.capabilities.foundation.conditions import Where
from threadline.capabilities.profile.streaks import day_ranges, grants
from threadline.capabilities.profile.streaks.definition import Tally
from threadline.capabilities.profile.streaks.events import OURS
from threadline.capabilities.profile.streaks.plan import Columns, Plan, TallyColumns, is_alone
from threadline.capabilities.profile.streaks.state import (
    BARE,
    BLOCK,
    BLOCK_DAYS,
    CHANGES,
    COUNTS,
    DAYS_PER_PART,
    EARLY,
    FIRST,
    FIRST_DAY,
    HEAD,
    LAST,
    LATE,
    NAMED,
    QUARTER,
    RECORD_SIZE,
    RECORDED_PARTS_MAX,
    SLOTS_MAX,
    UNNAMED,
    WINDOW_DAYS,
    ZONES_PER_DAY_MAX,
    Group,
    State,
)
from threadline.capabilities.profile.streaks.whereabouts import Dated, Journey
from threadline.kernel.calendar import day_offset, offset, period_of, zone_named
from threadline.kernel.event import Event, Recorded
from threadline.kernel.projection import Fold
from threadline.kernel.time import DAY


def compiled(plan: Plan, type: str) -> Fold | None:
    """The fold for events of one type; None if they count for nothing."""
    if type in OURS:
        return partial(grants.fold, plan.streaks)
    wanted = plan.conditions(type)
    if not wanted:
        return None
    if any(where for _, where in wanted):
        return partial(_fold_some, plan, wanted)
    return partial(_fold, plan, plan.columns_of(column for column, _ in wanted))


def fold(plan: Plan, state: State, recorded: Recorded) -> State | None:
    """The same for events of any type."""
    fold_type = compiled(plan, recorded.event.type)
    return None if fold_type is None else fold_type(state, recorded)


def in_place(plan: Plan, state: State, recorded: Recorded) -> bool:
    """Whether a late event may be folded as it is: unless it lies before the window and is not late itself, as of two
    people who are joined."""
    event = recorded.event
    head = state.get(HEAD)
    if head is None or is_alone(recorded) or not plan.counts(event):
        return True
    return bool((event.occurred_at - plan.day_start) // DAY >= head[BLOCK] * BLOCK_DAYS + 2)


def _fold_some(plan: Plan, wanted: list[tuple[int, Where]], state: State, recorded: Recorded) -> State | None:
    columns = [column for column, where in wanted if where.test(recorded.event)]
    return _fold(plan, plan.columns_of(columns), state, recorded) if columns else None


def _fold(plan: Plan, columns: Columns, state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    if not event.is_activity:
        return None
    at = event.occurred_at
    if -EARLY <= recorded.recorded_at - at <= LATE:  # as `is_alone` has it
        shows = add(plan, columns, state, event.context.get("timezone"), at)
    else:
        shows = settle_alone(plan, columns, state, event)
    return state if shows else None


# --- the window: the events of the last weeks, in groups that are dated when they are needed -------

_day_of = itemgetter(FIRST_DAY)


def add(plan: Plan, columns: Columns, state: State, name: Any, at: int) -> bool:
    """Take in an event that names a zone, or does not; answers whether anybody sees a difference."""
    named: dict[str, list[Group]] | None = state.get(NAMED)
    if named is None:
        named = state[NAMED] = {}
        # The local day of the first event may be the one before that of UTC.
        state[HEAD] = [_block((at - plan.day_start) // DAY - 1), [], [], [], 0]
    groups = named.get(name) if type(name) is str else None
    if groups is None:
        zone = zone_named(name)
        if zone is None:
            return _add_bare(plan, columns, state, at)
        groups = named.setdefault(zone, [])
    else:
        zone = name
    ahead = day_offset(zone, at // DAY)
    day, into = divmod(at + (offset(zone, at) if ahead is None else ahead) - plan.day_start, DAY)
    if groups and groups[-1][FIRST_DAY] == day:
        group, is_new = groups[-1], False
    else:
        group, is_new = _group(plan, state, named, zone, day, at)
    shows = is_new or columns.shows
    # A new group has these instants already, and the one in whose place it may count does not get them.
    if not is_new and not group[FIRST] <= at <= group[LAST]:
        group[FIRST] = min(at, group[FIRST])
        group[LAST] = max(at, group[LAST])
        # Of somebody who stays in one zone no more shows than which days there are.
        shows = shows or not stays(state, named)
    for position in columns.places:
        shows = shows or not group[position]
        group[position] += 1
    for other in plan.others:
        if other.early >= 0 and other.column in columns.numbers and plan.is_early(other.tally, day, into):
            group[COUNTS + other.early] += 1
    return shows


def _group(plan: Plan, state: State, named: dict[str, list[Group]], zone: str, day: int, at: int) -> tuple[Group, bool]:
    """The group of a day in a zone, or the one in whose place it counts; and whether it was made for this."""
    groups = named[zone]
    position = len(groups)
    if position and groups[-1][FIRST_DAY] > day:
        position = bisect_left(groups, day, key=_day_of)
        if groups[position][FIRST_DAY] == day:
            return groups[position], False
    group = [day, at, at, *([0] * plan.width)]
    groups.insert(position, group)
    if len(named) > ZONES_PER_DAY_MAX:
        group = _crowd(named, zone, day, group)
    _move_on(plan, state, day)
    return group, True


def _add_bare(plan: Plan, columns: Columns, state: State, at: int) -> bool:
    """Take in an event that names no zone."""
    day, into = divmod(at - plan.day_start, DAY)
    bare: list[Group] = state.setdefault(BARE, [])
    position = len(bare)
    while position and bare[position - 1][0] > day:
        position -= 1
    if position and bare[position - 1][0] == day:
        entry = bare[position - 1]
    else:
        entry = [day, 1]
        bare.insert(position, entry)
        _move_on(plan, state, day)
    return _count_slot(entry, into // QUARTER, columns.numbers, len(plan.sources)) or columns.shows


def _block(day: int) -> int:
    """The first block of the window if this is the newest day."""
    return (day - WINDOW_DAYS) // BLOCK_DAYS


def _move_on(plan: Plan, state: State, day: int) -> None:
    """Settle what lies before the window, now that there is an event on this day."""
    block = _block(day)
    if block > state[HEAD][BLOCK]:
        settle_before(plan, state, block)


def stays(state: State, named: dict[str, list[Group]]) -> bool:
    """Whether the person was in one zone all the time, as far as a glance shows."""
    if len(named) > 1 or BARE in state:
        return False
    changes = state[HEAD][CHANGES]
    return not changes or (len(changes) == 2 and changes[0] in named)


# --- bounds ---------------------------------------------------------------------------------------


def _crowd(named: dict[str, list[Group]], zone: str, day: int, new: Group) -> Group:
    """The group in whose place a new one counts: itself, unless enough zones with smaller names have the day."""
    of_day: dict[str, Group] = {}
    for name, groups in named.items():
        position = bisect_left(groups, day, key=_day_of)
        if position < len(groups) and groups[position][FIRST_DAY] == day:
            of_day[name] = groups[position]
    last = sorted(of_day)[:ZONES_PER_DAY_MAX][-1]
    for gone in sorted(of_day)[ZONES_PER_DAY_MAX:]:
        named[gone].remove(of_day[gone])
        if not named[gone]:
            del named[gone]
        for position in range(COUNTS, len(new)):
            of_day[last][position] += of_day[gone][position]
    return new if zone in named and new in named[zone] else of_day[last]


def join_crowds(named: dict[str, list[Group]]) -> None:
    """Join the groups of each day that has them in more zones than are distinguished."""
    if len(named) > ZONES_PER_DAY_MAX:
        every = [group for groups in named.values() for group in groups]
        for day in {group[FIRST_DAY] for group in every}:
            _crowd(named, "", day, [0] * max(map(len, every)))


def _count_slot(entry: Group, slot: int, columns: Iterable[int], sources: int) -> bool:
    """Count an event in its slot of a day; answers whether it is the first there in one of its columns."""
    slot -= slot % entry[1]
    position, size = 2, 1 + sources
    while position < len(entry) and entry[position] < slot:
        position += size
    if position == len(entry) or entry[position] != slot:
        entry[position:position] = (slot, *([0] * sources))
    shows = False
    for column in columns:
        shows |= not entry[position + 1 + column]
        entry[position + 1 + column] += 1
    if len(entry) > 2 + SLOTS_MAX * size and entry[1] == 1:
        widen(entry, size)
    return shows


def widen(entry: Group, size: int) -> None:
    """Distinguish hours instead of quarters."""
    merged: dict[int, list[int]] = {}
    for position in range(2, len(entry), size):
        hour = merged.setdefault(entry[position] - entry[position] % 4, [0] * (size - 1))
        for column, count in enumerate(entry[position + 1 : position + size]):
            hour[column] += count
    entry[1:] = (4, *(number for slot, counted in merged.items() for number in (slot, *counted)))


# --- what is settled: records of days that no event in time can change, and the sets of tallies ----


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
    named = event.context.get("timezone")
    zone = (zone_named(named) if named else None) or plan.calendar.timezone
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
