"""Events about streaks themselves: freezes and amnesty that were granted, milestones and hops that were reported."""

from __future__ import annotations

from threadline.capabilities.profile.streaks import day_ranges
from threadline.capabilities.profile.streaks.definition import StreakSet
from threadline.capabilities.profile.streaks.events import (
    STREAK_AMNESTY_GRANTED,
    STREAK_FREEZE_GRANTED,
    STREAK_MILESTONE_REACHED,
)
from threadline.capabilities.profile.streaks.state import State
from threadline.kernel.calendar import day_of, local_day, zone_named
from threadline.kernel.event import Event, Recorded
from threadline.kernel.limits import AMNESTY_DAYS_MAX, STREAK_MILESTONES_MAX

FREEZES, UNDATED, AMNESTY, MILESTONES, HOPS = "freezes", "undated", "amnesty", "milestones", "hops"
"""Parts of the state. All but the last are by streak, ``""`` for all: granted freezes as [day, how many, …] in order of
days; those of events that named no zone, by instants; a set of days; the newest day on which each length was
reported. The last is when zone hopping was last reported."""

GRANTS_MAX = 200
"""Days, and instants, with granted freezes that are remembered of a streak, the newest of each."""
FREEZES_OF_EVENT_MAX = 366


def fold(streaks: StreakSet, state: State, recorded: Recorded) -> State | None:
    """Take in one of our own types. What is not as it should be is passed over."""
    event = recorded.event
    if event.type == STREAK_FREEZE_GRANTED:
        _add_freezes(streaks, state, event)
    elif event.type == STREAK_AMNESTY_GRANTED:
        _add_amnesty(streaks, state, event)
    elif event.type == STREAK_MILESTONE_REACHED:
        _add_milestone(state, event)
    else:
        before = state.get(HOPS)
        state[HOPS] = event.occurred_at if before is None else max(event.occurred_at, before)
    return state


def _streak(streaks: StreakSet, event: Event) -> str | None:
    """The streak that is meant, ``""`` for all of them; None if there is none of that name."""
    name = event.properties.get("streak")
    if name is None:
        return ""
    return name if type(name) is str and name in streaks.by_name else None


def _add_freezes(streaks: StreakSet, state: State, event: Event) -> None:
    streak, count = _streak(streaks, event), event.properties.get("freezes", 1)
    if streak is None or type(count) is not int or not 0 < count <= FREEZES_OF_EVENT_MAX:
        return
    zone, when, name = zone_named(event.context.get("timezone")), event.occurred_at, UNDATED
    if zone is not None:
        when, name = local_day(zone, when, streaks.calendar.day_start), FREEZES
    # The zone that was in force then is found at reading, so that nothing here depends on other events.
    granted = state.get(name)
    if granted is None:
        granted = state[name] = {}
    known = granted.get(streak, [])
    counts = dict(zip(known[::2], known[1::2], strict=True))
    counts[when] = min(counts.get(when, 0) + count, FREEZES_OF_EVENT_MAX)
    granted[streak] = [number for item in sorted(counts.items())[-GRANTS_MAX:] for number in item]


def _add_amnesty(streaks: StreakSet, state: State, event: Event) -> None:
    streak = _streak(streaks, event)
    first, last = (day_of(event.properties.get(name)) for name in ("from", "to"))
    if streak is None or first is None or last is None or not 0 <= last - first < AMNESTY_DAYS_MAX:
        return
    if not -AMNESTY_DAYS_MAX <= first - local_day("UTC", event.occurred_at) <= AMNESTY_DAYS_MAX:
        return
    amnesty = state.get(AMNESTY)
    if amnesty is None:
        amnesty = state[AMNESTY] = {}
    forgiven = amnesty.setdefault(streak, [])
    for day in range(first, last + 1):
        day_ranges.add(forgiven, day)


def _add_milestone(state: State, event: Event) -> None:
    streak, length, day = (event.properties.get(name) for name in ("streak", "length", "day"))
    number = day_of(day)
    if type(streak) is not str or type(length) is not int or number is None:
        return
    milestones = state.get(MILESTONES)
    if milestones is None:
        milestones = state[MILESTONES] = {}
    lengths = milestones.setdefault(streak, {})
    lengths[str(length)] = max(number, lengths.get(str(length), number))
    if len(lengths) > STREAK_MILESTONES_MAX:
        del lengths[min(lengths)]
