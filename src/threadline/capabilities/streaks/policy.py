"""The policy ``streaks``: a milestone that is reached becomes an event, once; so does hopping from zone to zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from threadline.capabilities.streaks.civil import days_left_out
from threadline.capabilities.streaks.days import pairs
from threadline.capabilities.streaks.definition import Streak, StreakSet
from threadline.capabilities.streaks.events import (
    OURS,
    STREAK_AMNESTY_GRANTED,
    STREAK_FREEZE_GRANTED,
    STREAK_MILESTONE_REACHED,
    ZONE_HOPPING_DETECTED,
)
from threadline.capabilities.streaks.fold import HEAD, Plan
from threadline.capabilities.streaks.parts import State, part
from threadline.capabilities.streaks.projection import NAME
from threadline.capabilities.streaks.told import AMNESTY, HOPS, MILESTONES
from threadline.capabilities.streaks.whereabouts import (
    CHANGES,
    LEAPS,
    ZONES,
    Head,
    changes_within_a_day,
    hops_within_a_day,
)
from threadline.kernel.event import Event, Recorded
from threadline.kernel.identity import MERGED
from threadline.kernel.policy import TIMER_FIRED, Emit, Known, Policy, Timer, Wish, turns_max
from threadline.kernel.time import DAY

HOPS_MAX = 2
"""Changes of zone within 24 hours that raise no flag."""
TIMER = "milestones"
"""Of one cause may come so much and no more: what was reached beyond that is told by a timer that is due at once."""
_LENGTHENING = frozenset({MERGED, STREAK_AMNESTY_GRANTED, STREAK_FREEZE_GRANTED, TIMER_FIRED})
"""After these any run may be longer, or be alive, although no day was added."""


def policy(streaks: StreakSet) -> Policy:
    """The policy of these streaks. It sees every event, so it first looks whether there is anything to compute."""
    watched = tuple(Watched(streaks, streak) for streak in streaks.streaks if streak.milestones)
    also = frozenset({MERGED, TIMER_FIRED})
    return Policy(name=NAME, handles=None, also=also, react=partial(_react, Plan(streaks), watched))


def _react(plan: Plan, watched: Sequence[Watched], recorded: Recorded, known: Known) -> Sequence[Wish]:
    event = recorded.event
    if event.type in _LENGTHENING:
        return _told([wish for each in watched for wish in _reached(each.streak, known, event)], known)
    if event.source_type == "internal" or event.type in OURS:
        return ()
    state: State = known.opened(NAME)
    head = state.get(HEAD)
    if head is None or head.__class__ is msgspec.Raw:
        return ()  # the event has touched nothing here
    wishes: list[Wish] = []
    if len(head[CHANGES]) > 2 * HOPS_MAX and event.occurred_at in head[CHANGES]:
        wishes += _hopping(head, state, event)
    for each in watched:
        if each.may_have_reached(state, head, known.at):
            wishes += _reached(each.streak, known, event)
    # An event before it in the same call may have opened the state; what this one brings about must not depend on that.
    return _told(wishes, known) if wishes and plan.counts(event) else ()


def _told(wishes: list[Wish], known: Known) -> Sequence[Wish]:
    """As much as may be told at once, and a timer for the rest."""
    most = turns_max(known, STREAK_MILESTONE_REACHED)
    if len(wishes) <= most:
        return wishes
    return [*wishes[:most], Timer(key=TIMER, due_at=known.at, unless_earlier=True)]


def _hopping(head: Head, state: State, event: Event) -> Iterator[Wish]:
    told_at = part(state, HOPS)
    # An event that arrives late may be the one too many for a change that came up to a day after it.
    for at in changes_within_a_day(head, event.occurred_at):
        zones = hops_within_a_day(head, at)
        if len(zones) > HOPS_MAX and (told_at is None or abs(at - told_at) >= DAY):
            said = {"changes": len(zones), "zones": zones}
            yield Emit(type=ZONE_HOPPING_DETECTED, key="hopping", occurred_at=at, properties=said)
            return


class Watched:
    """A streak with milestones, and how to see at a glance that none of them can have been reached."""

    __slots__ = ("least", "name", "plain", "streak", "top")

    def __init__(self, streaks: StreakSet, streak: Streak) -> None:
        self.streak = streak
        self.name = streaks.parts[streak.name][0]
        self.least = streak.milestones[0]
        self.top = streak.times - 1 if streak.counting == "events" else 0
        bridged = streak.grace or streak.freezes.max or streaks.calendar.amnesty
        self.plain = streak.cadence == "day" and not bridged
        """Whether a run is simply one range of days."""

    def may_have_reached(self, state: State, head: Head, at: int) -> bool:
        """Whether the event may have made a run as long as a milestone that was not told in it."""
        sets = state.get(self.name)
        if sets is None or sets.__class__ is msgspec.Raw:
            return False  # the event has done nothing for this streak
        done = sets[self.top]
        if not self.plain or head[LEAPS] or AMNESTY in state or any(map(days_left_out, head[ZONES])):
            return sum(last - first + 1 for each in sets for first, last in pairs(each)) >= self.least
        # Wherever the person is, it is at most a day later there.
        if not done or done[-1] - done[-2] + 1 < self.least or done[-1] < at // DAY - 2:
            return False
        told = (part(state, MILESTONES) or {}).get(self.streak.name, {})
        lengths = (length for length in self.streak.milestones if length <= done[-1] - done[-2] + 1)
        return any(told.get(str(length), done[-2] - 1) < done[-2] for length in lengths)


def _reached(streak: Streak, known: Known, event: Event) -> Iterator[Wish]:
    view = known.view(NAME)[streak.name]
    if not view["current"]:
        return
    begun, day = view["run"]["from"], view["run"]["to"]
    told = {each["length"]: each["day"] for each in view["milestones"]}
    for length in streak.milestones:
        # Once in each run: what was told on a day of this one is not told again, however the run has grown together.
        if length <= view["current"] and told.get(length, "") < begun:
            said = {"streak": streak.name, "length": length, "day": day}
            key = f"{streak.name}:{length}"
            yield Emit(type=STREAK_MILESTONE_REACHED, key=key, occurred_at=event.occurred_at, properties=said)
