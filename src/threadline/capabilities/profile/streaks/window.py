"""The window: the events of the last weeks, in groups that are dated when somebody looks, or when they are settled."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from threadline.capabilities.profile.streaks.plan import Columns, Plan
from threadline.capabilities.profile.streaks.settled_days import settle_before
from threadline.capabilities.profile.streaks.state import (
    BARE,
    BLOCK,
    BLOCK_DAYS,
    CHANGES,
    COUNTS,
    FIRST,
    FIRST_DAY,
    HEAD,
    LAST,
    NAMED,
    QUARTER,
    SLOTS_MAX,
    WINDOW_DAYS,
    ZONES_PER_DAY_MAX,
    Group,
    State,
)
from threadline.kernel.calendar import day_offset, offset
from threadline.kernel.time import DAY
from threadline.kernel.zones import zone_named

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
