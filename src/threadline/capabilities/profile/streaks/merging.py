"""The state of the union of two people's events, made of their two states; None where only the events can tell.

What lies in the windows of both can be put together, for its days are given out later. What is settled of one cannot be
changed by what came before it of the other: so nothing may have, unless neither has ever been in another zone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from threadline.capabilities.profile.streaks import day_ranges
from threadline.capabilities.profile.streaks.definition import Tally
from threadline.capabilities.profile.streaks.fold import forget_parts, join_crowds, recorded_parts, settle_before, widen
from threadline.capabilities.profile.streaks.grants import (
    AMNESTY,
    FREEZES,
    FREEZES_OF_EVENT_MAX,
    GRANTS_MAX,
    HOPS,
    MILESTONES,
    UNDATED,
)
from threadline.capabilities.profile.streaks.plan import Plan
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
    RECENT,
    RECORD_SIZE,
    SLOTS_MAX,
    UNNAMED,
    Group,
    State,
)
from threadline.capabilities.profile.streaks.whereabouts import touch
from threadline.kernel.limits import STREAK_MILESTONES_MAX
from threadline.kernel.merging import Entries, merge_entries


def merge(plan: Plan, left: State, right: State) -> State | None:
    """The state of both together, or None; it reuses both."""
    head: list[Any] | None = left.get(HEAD, right.get(HEAD))
    if HEAD in left and HEAD in right:
        head = _merge_heads(plan, left, right)
        if head is None:
            return None
    block = max((state[HEAD][BLOCK] for state in (left, right) if HEAD in state), default=0)
    merges = {
        FREEZES: _merge_grants,
        UNDATED: _merge_grants,
        AMNESTY: _merge_amnesty,
        MILESTONES: _merge_milestones,
        HOPS: max,
        NAMED: _merge_named,
        BARE: lambda left, right: _merge_bare(len(plan.sources), left, right),
        **{tally.part: _sets_merger(tally.tally) for tally in plan.tallies},
    }
    merged: State = {}
    for name in left.keys() | right.keys() - {HEAD}:
        if name not in left or name not in right:
            merged[name] = left[name] if name in left else right[name]
        elif name != HEAD:
            merged[name] = merges.get(name, _merge_records)(left[name], right[name])
    if head is not None:
        merged[HEAD] = head
        join_crowds(merged[NAMED])
        settle_before(plan, merged, block)
    forget_parts(merged, recorded_parts(merged))
    return merged


def _merge_heads(plan: Plan, left: State, right: State) -> list[Any] | None:
    """Where the two were as one person before the window of the one whose window begins first; None if only the
    events show that."""
    heads = left[HEAD], right[HEAD]
    block = min(head[BLOCK] for head in heads)
    unnamed = int(any(head[UNNAMED] for head in heads))
    zones = {zone for state in (left, right) for zone in (*state[NAMED], *state[HEAD][CHANGES][::2])}
    bare = unnamed or BARE in left or BARE in right
    if not zones or (len(zones) == 1 and (not bare or zones == {plan.calendar.timezone})):
        recent = [*heads[0][RECENT]]
        for day, at in day_ranges.pairs(heads[1][RECENT]):
            touch(recent, day, at)
        firsts = [head[CHANGES][1] for head in heads if head[CHANGES]]
        if firsts:
            until = max(head[BLOCK] for head in heads) * BLOCK_DAYS
            firsts += (group[FIRST] for group in _groups(left, right) if group[FIRST_DAY] < until)
        return [block, [*zones, min(firsts)] if firsts else [], recent, [], unnamed]
    before, after = sorted((left, right), key=lambda state: not state[HEAD][RECENT])
    head = before[HEAD]
    if after[HEAD][RECENT]:
        return None
    if head[RECENT]:
        start = head[BLOCK] * BLOCK_DAYS
        first = min((group[0] for group in (*_groups(after), *after.get(BARE, ()))), default=start)
        return [*head] if first >= start else None
    return [block, [], [], [], unnamed]


def _groups(*states: State) -> Iterator[Group]:
    return (group for state in states for groups in state[NAMED].values() for group in groups)


def _merge_named(left: Entries, right: Entries) -> Entries:
    return merge_entries(left, right, _merge_groups)


def _merge_groups(left: list[Group], right: list[Group]) -> list[Group]:
    groups = {group[FIRST_DAY]: group for group in left}
    for group in right:
        known = groups.setdefault(group[FIRST_DAY], group)
        if known is not group:
            sums = (a + b for a, b in zip(known[COUNTS:], group[COUNTS:], strict=True))
            groups[group[FIRST_DAY]] = [
                group[FIRST_DAY],
                min(known[FIRST], group[FIRST]),
                max(known[LAST], group[LAST]),
                *sums,
            ]
    return [groups[day] for day in sorted(groups)]


def _merge_bare(sources: int, left: list[Group], right: list[Group]) -> list[Group]:
    entries = {entry[0]: entry for entry in left}
    for entry in right:
        known = entries.setdefault(entry[0], entry)
        if known is not entry:
            entries[entry[0]] = _merge_slots(sources, known, entry)
    return [entries[day] for day in sorted(entries)]


def _merge_slots(sources: int, left: Group, right: Group) -> Group:
    size, width = 1 + sources, max(left[1], right[1])
    counted: dict[int, list[int]] = {}
    for entry in (left, right):
        for position in range(2, len(entry), size):
            slot = counted.setdefault(entry[position] - entry[position] % width, [0] * sources)
            for column in range(sources):
                slot[column] += entry[position + 1 + column]
    merged = [left[0], width, *(number for slot in sorted(counted) for number in (slot, *counted[slot]))]
    if width == 1 and len(counted) > SLOTS_MAX:
        widen(merged, size)
    return merged


def _merge_records(left: list[int], right: list[int]) -> list[int]:
    records: dict[int, tuple[int, int]] = {}
    for day, at, count in (*_records(left), *_records(right)):
        first, before = records.get(day, (at, 0))
        records[day] = min(first, at), before + count
    return [number for day in sorted(records) for number in (day, *records[day])]


def _records(flat: list[int]) -> Iterable[tuple[int, ...]]:
    return zip(*(flat[position::RECORD_SIZE] for position in range(RECORD_SIZE)), strict=True)


# --- sets ---------------------------------------------------------------------------------------


def _sets_merger(tally: Tally) -> Any:
    def merge_sets(left: list[day_ranges.Ranges], right: list[day_ranges.Ranges]) -> list[day_ranges.Ranges]:
        late = slice(tally.levels)
        early = slice(tally.levels, None)
        return [*_merge_levels(left[late], right[late]), *_merge_levels(left[early], right[early])]

    return merge_sets


def _merge_levels(left: list[day_ranges.Ranges], right: list[day_ranges.Ranges]) -> list[day_ranges.Ranges]:
    """Level n of both together: the numbers that lie in n sets or more, for each lies in as many as it has counted."""
    changes: Counter[int] = Counter()
    for ranges in (*left, *right):
        changes.update(ranges[::2])
        changes.subtract(last + 1 for last in ranges[1::2])
    merged: list[day_ranges.Ranges] = [[] for _ in left]
    depth = before = 0
    for number in sorted(changes):
        for level in merged[:depth]:
            if level and level[-1] == before - 1:
                level[-1] = number - 1
            else:
                level += (before, number - 1)
        depth, before = depth + changes[number], number
    for level in merged:
        day_ranges.forget(level, merged[0][-1] - day_ranges.SPAN_MAX if merged[0] else 0)
    return merged


# --- grants and reports -------------------------------------------------------------------------


def _merge_grants(left: Entries, right: Entries) -> Entries:
    return merge_entries(left, right, _merge_counts)


def _merge_counts(left: list[int], right: list[int]) -> list[int]:
    counts: Counter[int] = Counter()
    for when, count in (*day_ranges.pairs(left), *day_ranges.pairs(right)):
        counts[when] = min(counts[when] + count, FREEZES_OF_EVENT_MAX)
    return [number for item in sorted(counts.items())[-GRANTS_MAX:] for number in item]


def _merge_amnesty(left: Entries, right: Entries) -> Entries:
    return merge_entries(left, right, _merge_days)


def _merge_days(left: day_ranges.Ranges, right: day_ranges.Ranges) -> day_ranges.Ranges:
    merged = day_ranges.union(day_ranges.pairs(left), day_ranges.pairs(right))
    day_ranges.forget(merged, merged[-1] - day_ranges.SPAN_MAX)
    return merged


def _merge_milestones(left: Entries, right: Entries) -> Entries:
    return merge_entries(left, right, _merge_lengths)


def _merge_lengths(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    merged = merge_entries(left, right, max)
    for length in sorted(merged)[:-STREAK_MILESTONES_MAX]:
        del merged[length]
    return merged
