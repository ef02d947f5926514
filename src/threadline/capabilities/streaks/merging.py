"""The state of the union of two people's events, made of their two states; None where only the events can tell.

The day that an event counts for depends on the zones named before it. States can be merged where every event stays on
its day: all events of one person lie within a period in which the other was in the same zone, and a day away from the
changes of zone around that period.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from threadline.capabilities.streaks import days
from threadline.capabilities.streaks.definition import StreakSet, Tally
from threadline.capabilities.streaks.fold import HEAD, RECORD_SIZE, RECORDED_PARTS_MAX
from threadline.capabilities.streaks.state import State
from threadline.capabilities.streaks.told import (
    AMNESTY,
    FREEZES,
    FREEZES_OF_EVENT_MAX,
    GRANTS_MAX,
    HOPS,
    MILESTONES,
    UNDATED,
)
from threadline.capabilities.streaks.whereabouts import BARE, CHANGES, CHANGES_MAX, NEWEST, RECENT, ZONES, Head
from threadline.kernel.limits import STREAK_MILESTONES_MAX
from threadline.kernel.merging import Entries, merge_entries
from threadline.kernel.time import DAY


def merge(streaks: StreakSet, one: State, other: State) -> State | None:
    """The state of both together, or None; it reuses both."""
    head = _merge_heads(one[HEAD], other[HEAD]) if HEAD in one and HEAD in other else one.get(HEAD, other.get(HEAD))
    if head is None and (HEAD in one or HEAD in other):
        return None
    merges = {
        FREEZES: _merge_grants, UNDATED: _merge_grants, AMNESTY: _merge_amnesty, MILESTONES: _merge_milestones,
        HOPS: max, **{f"t{place}": _sets_merger(tally) for place, tally in enumerate(streaks.tallies)},
    }  # fmt: skip
    merged: State = {}
    for name in one.keys() | other.keys():
        if name not in one or name not in other:
            merged[name] = one[name] if name in one else other[name]
        elif name != HEAD:
            merged[name] = merges.get(name, _merge_records)(one[name], other[name])
    records = sorted(int(name[1:]) for name in merged if name[0] == "d")
    for number in records:
        if number <= records[-1] - RECORDED_PARTS_MAX:
            del merged[f"d{number}"]
    if head is not None:
        merged[HEAD] = head
        head[NEWEST] = [
            newest
            for place, tally in enumerate(streaks.tallies)
            for newest in _newest(tally, merged.get(f"t{place}", ()))
        ]
    return merged


def _merge_heads(one: Head, other: Head) -> Head | None:
    many, few = sorted((one, other), key=lambda head: len(head[CHANGES]), reverse=True)
    changes, bare, last = [*many[CHANGES]], few[BARE], few[RECENT][1]
    if len(few[CHANGES]) > 2:
        return None
    if changes:
        first = few[CHANGES][1] if few[CHANGES] else None
        # Where in the list of changes the period ends that all events of the one with fewer changes lie in.
        end = 2 if bare is not None else max(2, 2 * bisect_right(changes[1::2], first))
        if first is not None and many[ZONES][changes[end - 2]] != few[ZONES][0]:
            return None
        if end < len(changes) and last > changes[end + 1] - DAY:
            return None
        if end > 2:
            if first < changes[end - 1] + DAY:
                return None
        else:
            # Events that named no zone must stay before the first that did, and what is forgotten has no first.
            if len(changes) >= 2 * CHANGES_MAX or (bare is not None and bare >= changes[1]):
                return None
            if first is not None:
                if many[BARE] is not None and many[BARE] >= first:
                    return None
                changes[1] = min(changes[1], first)
    newest_bare = max((at for at in (many[BARE], bare) if at is not None), default=None)
    recent = _merge_recent(many[RECENT], few[RECENT])
    head = [*many]
    head[CHANGES], head[BARE], head[RECENT] = changes, newest_bare, recent
    return head


def _merge_recent(one: list[int], other: list[int]) -> list[int]:
    touched: dict[int, int] = {}
    for day, at in (*days.pairs(one), *days.pairs(other)):
        touched[day] = max(at, touched.get(day, at))
    newest = sorted(touched.items(), key=lambda each: (each[1], each[0]), reverse=True)[:2]
    return [number for each in newest for number in each]


def _merge_records(one: list[int], other: list[int]) -> list[int]:
    records: dict[int, tuple[int, int]] = {}
    for day, at, count in (*_records(one), *_records(other)):
        first, before = records.get(day, (at, 0))
        records[day] = min(first, at), before + count
    return [number for day in sorted(records) for number in (day, *records[day])]


def _records(flat: list[int]) -> Iterable[tuple[int, ...]]:
    return zip(*(flat[place::RECORD_SIZE] for place in range(RECORD_SIZE)), strict=True)


# --- sets ---------------------------------------------------------------------------------------


def _sets_merger(tally: Tally) -> Any:
    def merge_sets(one: list[days.Ranges], other: list[days.Ranges]) -> list[days.Ranges]:
        late = slice(tally.levels)
        early = slice(tally.levels, None)
        return [*_merge_levels(one[late], other[late]), *_merge_levels(one[early], other[early])]

    return merge_sets


def _merge_levels(one: list[days.Ranges], other: list[days.Ranges]) -> list[days.Ranges]:
    """Level n of both together: the numbers that lie in n sets or more, for each lies in as many as it has counted."""
    changes: Counter[int] = Counter()
    for ranges in (*one, *other):
        changes.update(ranges[::2])
        changes.subtract(last + 1 for last in ranges[1::2])
    merged: list[days.Ranges] = [[] for _ in one]
    depth = before = 0
    for number in sorted(changes):
        for level in merged[:depth]:
            if level and level[-1] == before - 1:
                level[-1] = number - 1
            else:
                level += (before, number - 1)
        depth, before = depth + changes[number], number
    for level in merged:
        days.forget(level, merged[0][-1] - days.SPAN_MAX if merged[0] else 0)
    return merged


def _newest(tally: Tally, sets: Iterable[days.Ranges]) -> tuple[int | None, int | None]:
    levels = list(sets)
    late, early = levels[: tally.levels], levels[tally.levels :]
    return (late[-1][-1] if late and late[-1] else None), (early[-1][-1] if early and early[-1] else None)


# --- what others have told ----------------------------------------------------------------------


def _merge_grants(one: Entries, other: Entries) -> Entries:
    return merge_entries(one, other, _merge_counts)


def _merge_counts(one: list[int], other: list[int]) -> list[int]:
    counts: Counter[int] = Counter()
    for when, count in (*days.pairs(one), *days.pairs(other)):
        counts[when] = min(counts[when] + count, FREEZES_OF_EVENT_MAX)
    return [number for each in sorted(counts.items())[-GRANTS_MAX:] for number in each]


def _merge_amnesty(one: Entries, other: Entries) -> Entries:
    return merge_entries(one, other, _merge_days)


def _merge_days(one: days.Ranges, other: days.Ranges) -> days.Ranges:
    merged = days.union(days.pairs(one), days.pairs(other))
    days.forget(merged, merged[-1] - days.SPAN_MAX)
    return merged


def _merge_milestones(one: Entries, other: Entries) -> Entries:
    return merge_entries(one, other, _merge_lengths)


def _merge_lengths(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    merged = merge_entries(one, other, max)
    for length in sorted(merged)[:-STREAK_MILESTONES_MAX]:
        del merged[length]
    return merged
