"""The policy ``streaks``: a milestone that is reached becomes an event, once; so does hopping from zone to zone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from threadline.capabilities.profile.streaks.day_ranges import pairs
from threadline.capabilities.profile.streaks.definition import Streak, StreakSet
from threadline.capabilities.profile.streaks.events import (
    STREAK_AMNESTY_GRANTED,
    STREAK_FREEZE_GRANTED,
    STREAK_MILESTONE_REACHED,
    STREAKS_REFRESHED,
    ZONE_HOPPING_DETECTED,
)
from threadline.capabilities.profile.streaks.fold import stays
from threadline.capabilities.profile.streaks.grants import AMNESTY, HOPS, MILESTONES
from threadline.capabilities.profile.streaks.plan import Plan
from threadline.capabilities.profile.streaks.projection import NAME
from threadline.capabilities.profile.streaks.state import BARE, COUNTS, FIRST_DAY, HEAD, LEAPS, NAMED, State
from threadline.capabilities.profile.streaks.view import Life, Reader
from threadline.capabilities.profile.streaks.whereabouts import changes_near, hops_within_a_day
from threadline.kernel.calendar import day_text, days_left_out, zone_named
from threadline.kernel.event import Event, Recorded
from threadline.kernel.identity import MERGED
from threadline.kernel.operation import BEFORE, PARTS
from threadline.kernel.policy import (
    TIMER_FIRED,
    Emit,
    Policy,
    PolicyView,
    Read,
    Timer,
    TimerSentence,
    Wish,
    emission_budget,
)
from threadline.kernel.time import DAY

HOPS_MAX = 2
"""Changes of zone within 24 hours that raise no flag."""
TIMER = "milestones"
"""Of one cause may come so much and no more: what was reached beyond that is told by a timer that is due at once. The
same timer looks again when an event that lies ahead of the clock counts."""
_LENGTHENING = frozenset({MERGED, STREAK_AMNESTY_GRANTED, STREAK_FREEZE_GRANTED, STREAKS_REFRESHED, TIMER_FIRED})
"""After these any run may be longer, or be alive, although no day was added."""


def policy(streaks: StreakSet) -> Policy:
    """The policy of these streaks."""
    plan = Plan(streaks)
    watched = tuple(Watched(plan, streak) for streak in streaks.streaks if streak.milestones)
    react = partial(_react, Reader(plan), watched)
    return Policy(
        name=NAME,
        handles=None,
        react=react,
        timers=(TimerSentence("May reach a milestone of a streak"),),
        also=_LENGTHENING,
        emits=frozenset({STREAK_MILESTONE_REACHED, ZONE_HOPPING_DETECTED}),
        sends=frozenset(),
        reads=(Read(NAME),),
    )


def _react(reader: Reader, watched: Sequence[Watched], recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    if event.type in _LENGTHENING:
        looked, at = watched, None
        if event.type == STREAKS_REFRESHED:
            parts, before = event.properties.get(PARTS), event.properties.get(BEFORE)
            looked = [watch for watch in watched if parts is None or watch.streak.name in parts]
            at = None if before is None else before - 1
        wishes = [wish for watch in looked for wish in _reached(watch.streak, known, event, at)]
        return _within_budget(watched, wishes, known)
    state: State = known[NAME]
    wishes = []
    travels = len(state.get(NAMED, ())) > 1
    near = [watch for watch in watched if not watch.is_far(state)]
    if near or travels:
        life = reader.life(state)
        if travels and zone_named(event.context.get("timezone")) and event.occurred_at in life.journey.changes[1::2]:
            wishes += _hopping(life, event)
        for watch in near:
            if watch.may_have_reached(life, known.at):
                wishes += _reached(watch.streak, known, event)
    return _within_budget(watched, wishes, known)


def _within_budget(watched: Sequence[Watched], wishes: list[Wish], known: PolicyView) -> Sequence[Wish]:
    """As much as may be told at once, and a timer for the rest, or for the next event that lies ahead of the clock:
    with what has come since, it may reach a milestone that it did not reach when it became known."""
    again = known.ahead() if watched else None
    if wishes and len(wishes) > (most := emission_budget(known, STREAK_MILESTONE_REACHED)):
        wishes, again = wishes[:most], known.at
    return wishes if again is None else [*wishes, Timer(key=TIMER, due_at=again, unless_earlier=True)]


def _hopping(life: Life, event: Event) -> Iterator[Wish]:
    reported_at, changes = life.state.get(HOPS), life.journey.changes
    # An event that arrives late may be the one too many for a change that came up to a day after it.
    for at in changes_near(changes, event.occurred_at):
        zones = hops_within_a_day(changes, at)
        if len(zones) > HOPS_MAX and (reported_at is None or abs(at - reported_at) >= DAY):
            details = {"changes": len(zones), "zones": zones}
            yield Emit(type=ZONE_HOPPING_DETECTED, key="hopping", occurred_at=at, properties=details)
            return


class Watched:
    """A streak with milestones, and how to see at a glance that none of them can have been reached."""

    __slots__ = ("column", "least", "name", "plain", "streak", "top")

    def __init__(self, plan: Plan, streak: Streak) -> None:
        calendar = plan.calendar
        self.streak = streak
        self.name = plan.streaks.parts[streak.name][0]
        self.least = streak.milestones[0]
        self.top = streak.times - 1 if streak.counting == "events" else 0
        bridged = streak.grace or streak.freezes.max or calendar.amnesty
        self.plain = streak.cadence == "day" and not bridged
        """Whether a run is simply one range of days."""
        self.column = dict(plan.of_days).get(self.name) if self.plain else None
        """The column of a group that says whether its day counts; None where there is more to it."""

    def is_far(self, state: State) -> bool:
        """Whether the days in a row up to the newest are surely too few for any milestone."""
        named = state.get(NAMED)
        if self.column is None or not named or BARE in state or AMNESTY in state:
            return False
        if not stays(state, named) or state[HEAD][LEAPS] or any(map(days_left_out, named)):
            return False
        [groups] = named.values()
        settled: list[int] = next(iter(state.get(self.name, ())), [])
        if settled and settled[-1] >= groups[0][FIRST_DAY]:
            return False
        days, following = 0, 0
        for group in reversed(groups):
            if group[COUNTS + self.column]:
                if days and group[FIRST_DAY] != following - 1:
                    return True
                days, following = days + 1, group[FIRST_DAY]
                if days == self.least:
                    return False
        return not settled

    def may_have_reached(self, life: Life, at: int) -> bool:
        """Whether the event may have made a run reach a milestone that was not emitted for it."""
        sets = life.sets[self.name]
        done = sets[self.top]
        odd = life.journey.leaps or AMNESTY in life.state or any(map(days_left_out, life.journey.changes[::2]))
        if odd or not self.plain:
            return sum(last - first + 1 for ranges in sets for first, last in pairs(ranges)) >= self.least
        # Wherever the person is, it is at most a day later there.
        if not done or done[-1] - done[-2] + 1 < self.least or done[-1] < at // DAY - 2:
            return False
        reached = life.state.get(MILESTONES, {}).get(self.streak.name, {})
        lengths = (length for length in self.streak.milestones if length <= done[-1] - done[-2] + 1)
        return any(reached.get(str(length), done[-2] - 1) < done[-2] for length in lengths)


def _reached(streak: Streak, known: PolicyView, event: Event, at: int | None = None) -> Iterator[Wish]:
    view = known.view(NAME, at)[streak.name]
    # From the state, not the view: an event further ahead may have led to it already.
    for length in unreported(streak, view, known[NAME].get(MILESTONES, {}).get(streak.name, {})):
        details = {"streak": streak.name, "length": length, "day": view["run"]["to"]}
        key = f"{streak.name}:{length}"
        yield Emit(type=STREAK_MILESTONE_REACHED, key=key, occurred_at=event.occurred_at, properties=details)


def unreported(streak: Streak, view: Mapping[str, Any], reported: Mapping[str, int]) -> list[int]:
    """The milestones of a run that is alive for which there is no event, by the newest day on which each length was
    reported."""
    if not view["current"]:
        return []
    begun = view["run"]["from"]
    # Once in each run: a milestone on a day of this run is not emitted again, however runs have grown together.
    return [
        length
        for length in streak.milestones
        if length <= view["current"] and (str(length) not in reported or day_text(reported[str(length)]) < begun)
    ]
