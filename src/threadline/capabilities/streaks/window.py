"""The window: the events of the last weeks, in groups that are dated when somebody looks, or when they are settled."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from threadline.capabilities.streaks.civil import day_offset, offset
from threadline.capabilities.streaks.plan import Columns, Plan
from threadline.capabilities.streaks.settled_days import settle_before
from threadline.capabilities.streaks.state import (
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
from threadline.capabilities.streaks.whereabouts import zone_named
from threadline.kernel.time import DAY

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
    for place in columns.places:
        shows = shows or not group[place]
        group[place] += 1
    for other in plan.others:
        if other.early >= 0 and other.column in columns.numbers and plan.is_early(other.tally, day, into):
            group[COUNTS + other.early] += 1
    return shows


def _group(plan: Plan, state: State, named: dict[str, list[Group]], zone: str, day: int, at: int) -> tuple[Group, bool]:
    """The group of a day in a zone, or the one in whose place it counts; and whether it was made for this."""
    groups = named[zone]
    place = len(groups)
    if place and groups[-1][FIRST_DAY] > day:
        place = bisect_left(groups, day, key=_day_of)
        if groups[place][FIRST_DAY] == day:
            return groups[place], False
    group = [day, at, at, *([0] * plan.width)]
    groups.insert(place, group)
    if len(named) > ZONES_PER_DAY_MAX:
        group = _crowd(named, zone, day, group)
    _move_on(plan, state, day)
    return group, True


def _add_bare(plan: Plan, columns: Columns, state: State, at: int) -> bool:
    """Take in an event that names no zone."""
    day, into = divmod(at - plan.day_start, DAY)
    bare: list[Group] = state.setdefault(BARE, [])
    place = len(bare)
    while place and bare[place - 1][0] > day:
        place -= 1
    if place and bare[place - 1][0] == day:
        entry = bare[place - 1]
    else:
        entry = [day, 1]
        bare.insert(place, entry)
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
    found: dict[str, Group] = {}
    for name, groups in named.items():
        place = bisect_left(groups, day, key=_day_of)
        if place < len(groups) and groups[place][FIRST_DAY] == day:
            found[name] = groups[place]
    last = sorted(found)[:ZONES_PER_DAY_MAX][-1]
    for gone in sorted(found)[ZONES_PER_DAY_MAX:]:
        named[gone].remove(found[gone])
        if not named[gone]:
            del named[gone]
        for place in range(COUNTS, len(new)):
            found[last][place] += found[gone][place]
    return new if zone in named and new in named[zone] else found[last]


def join_crowds(named: dict[str, list[Group]]) -> None:
    """Join the groups of each day that has them in more zones than are distinguished."""
    if len(named) > ZONES_PER_DAY_MAX:
        every = [group for groups in named.values() for group in groups]
        for day in {group[FIRST_DAY] for group in every}:
            _crowd(named, "", day, [0] * max(map(len, every)))


def _count_slot(entry: Group, slot: int, columns: Iterable[int], sources: int) -> bool:
    """Count an event in its slot of a day; answers whether it is the first there in one of its columns."""
    slot -= slot % entry[1]
    place, size = 2, 1 + sources
    while place < len(entry) and entry[place] < slot:
        place += size
    if place == len(entry) or entry[place] != slot:
        entry[place:place] = (slot, *([0] * sources))
    shows = False
    for column in columns:
        shows |= not entry[place + 1 + column]
        entry[place + 1 + column] += 1
    if len(entry) > 2 + SLOTS_MAX * size and entry[1] == 1:
        widen(entry, size)
    return shows


def widen(entry: Group, size: int) -> None:
    """Distinguish hours instead of quarters."""
    merged: dict[int, list[int]] = {}
    for place in range(2, len(entry), size):
        hour = merged.setdefault(entry[place] - entry[place] % 4, [0] * (size - 1))
        for column, count in enumerate(entry[place + 1 : place + size]):
            hour[column] += count
    entry[1:] = (4, *(number for slot, counted in merged.items() for number in (slot, *counted)))
