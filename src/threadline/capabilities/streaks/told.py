"""What events tell of streaks themselves: freezes and amnesty that were granted, milestones and hops that were told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from threadline.capabilities.streaks import days
from threadline.capabilities.streaks.civil import day_of, local_day
from threadline.capabilities.streaks.events import (
    STREAK_AMNESTY_GRANTED,
    STREAK_FREEZE_GRANTED,
    STREAK_MILESTONE_REACHED,
)
from threadline.capabilities.streaks.whereabouts import named_zone
from threadline.kernel.event import Event, Recorded
from threadline.kernel.limits import AMNESTY_DAYS_MAX, STREAK_MILESTONES_MAX

if TYPE_CHECKING:
    from threadline.capabilities.streaks.fold import Plan

FREEZES, UNDATED, AMNESTY, MILESTONES, HOPS = "freezes", "undated", "amnesty", "milestones", "hops"
"""Parts of the state. All but the last are by streak, ``""`` for all: granted freezes as [day, how many, …] in order of
days; those of events that named no zone, by instants; a set of days; the newest day on which each length was told. The
last is when zone hopping was told last."""

GRANTS_MAX = 200
"""Days, and instants, with granted freezes that are remembered of a streak, the newest of each."""
FREEZES_OF_EVENT_MAX = 366

_unpack = msgspec.msgpack.Decoder().decode


def fold(plan: Plan, state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    """Take in one of our own types. What is not as it should be is passed over."""
    event = recorded.event
    if event.type == STREAK_FREEZE_GRANTED:
        _add_freezes(plan, state, event)
    elif event.type == STREAK_AMNESTY_GRANTED:
        _add_amnesty(plan, state, event)
    elif event.source_type == "internal":
        # Only we notice these; others may use the names, but not to put words into our mouth.
        if event.type == STREAK_MILESTONE_REACHED:
            _add_milestone(state, event)
        else:
            state[HOPS] = max(event.occurred_at, _part(state, HOPS, event.occurred_at))
    return state


def _part(state: dict[str, Any], name: str, otherwise: Any) -> Any:
    value = state.get(name, otherwise)
    if value.__class__ is msgspec.Raw:
        value = state[name] = _unpack(value)
    return value


def _streak(plan: Plan, event: Event) -> str | None:
    """The streak that is meant, ``""`` for all of them; None if there is none of that name."""
    name = event.properties.get("streak")
    if name is None:
        return ""
    return name if type(name) is str and name in plan.streaks.by_name else None


def _add_freezes(plan: Plan, state: dict[str, Any], event: Event) -> None:
    streak, count = _streak(plan, event), event.properties.get("freezes", 1)
    if streak is None or type(count) is not int or not 0 < count <= FREEZES_OF_EVENT_MAX:
        return
    zone, when, name = named_zone(event), event.occurred_at, UNDATED
    if zone is not None:
        when, name = local_day(zone, when, plan.calendar.day_start), FREEZES
    # Which zone was in force then is told when it is read, so that nothing here depends on what else is known.
    granted = _part(state, name, None)
    if granted is None:
        granted = state[name] = {}
    known = granted.get(streak, [])
    counts = dict(zip(known[::2], known[1::2], strict=True))
    counts[when] = min(counts.get(when, 0) + count, FREEZES_OF_EVENT_MAX)
    granted[streak] = [number for each in sorted(counts.items())[-GRANTS_MAX:] for number in each]


def _add_amnesty(plan: Plan, state: dict[str, Any], event: Event) -> None:
    streak = _streak(plan, event)
    first, last = (day_of(event.properties.get(name)) for name in ("from", "to"))
    if streak is None or first is None or last is None or not 0 <= last - first < AMNESTY_DAYS_MAX:
        return
    if not -AMNESTY_DAYS_MAX <= first - local_day("UTC", event.occurred_at) <= AMNESTY_DAYS_MAX:
        return
    amnesty = _part(state, AMNESTY, None)
    if amnesty is None:
        amnesty = state[AMNESTY] = {}
    forgiven = amnesty.setdefault(streak, [])
    for day in range(first, last + 1):
        days.add(forgiven, day)


def _add_milestone(state: dict[str, Any], event: Event) -> None:
    streak, length, day = (event.properties.get(name) for name in ("streak", "length", "day"))
    number = day_of(day)
    if type(streak) is not str or type(length) is not int or number is None:
        return
    milestones = _part(state, MILESTONES, None)
    if milestones is None:
        milestones = state[MILESTONES] = {}
    told = milestones.setdefault(streak, {})
    told[str(length)] = max(number, told.get(str(length), number))
    if len(told) > STREAK_MILESTONES_MAX:
        del told[min(told)]
