"""The policy ``points``: what an event earns and what looks wrong; see `spending.py` and `expiry.py` for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from threadline.capabilities.foundation.conditions import Subject
from threadline.capabilities.profile.points.definition import SPIKE_DAYS_MIN, Points, Rule, multiplied
from threadline.capabilities.profile.points.events import (
    AMOUNT_MAX,
    POINTS_ADJUSTED,
    POINTS_ANOMALY_DETECTED,
    POINTS_EARNED,
    POINTS_EXPIRED,
    POINTS_REFUSED,
    POINTS_SPEND_REQUESTED,
    POINTS_SPENT,
)
from threadline.capabilities.profile.points.expiry import (
    arm_expiry,
    await_next_expiry,
    expire,
    rearm_expiry,
    taken_by_operator,
)
from threadline.capabilities.profile.points.ledger import State, is_jump, is_spike
from threadline.capabilities.profile.points.limit_usage import earned_in_hour, earned_on_day, is_cooling, is_flagged
from threadline.capabilities.profile.points.spending import answer_spend
from threadline.kernel.calendar import Calendar, day_text
from threadline.kernel.event import CLAIMED_HISTORY, CLAMPED, Recorded
from threadline.kernel.identity import SPLIT
from threadline.kernel.policy import TIMER_FIRED, Emit, Policy, PolicyView, Read, TimerSentence, Wish, source_of
from threadline.kernel.time import HOUR, format_time

POLICY = "points"
SOURCE = source_of(POLICY)
"""The source of the events that the policy adds."""


def points_policy(points: Points) -> Policy:
    """The policy. It decides on the folded ledger inside the commit, so that no two decisions ever miss each other."""
    # What was not earned by the table came in all the same: from an operator, or because a rule awards it.
    expiring = {TIMER_FIRED, POINTS_ADJUSTED, POINTS_EARNED, SPLIT} if points.expires_after is not None else set()
    return Policy(
        name=POLICY,
        handles=points.types | {POINTS_SPEND_REQUESTED} | expiring,
        emits=frozenset({POINTS_EARNED, POINTS_SPENT, POINTS_REFUSED, POINTS_EXPIRED, POINTS_ANOMALY_DETECTED}),
        sends=frozenset(),
        reads=(
            Read("points"),
            Read("streaks"),
            *(
                Read(multiplier.path[0], multiplier.path[1:], multiplier.path_place)
                for multiplier in points.multipliers
            ),
        ),
        react=partial(_react, points, Calendar(points.timezone)),
        timers=(TimerSentence("Points of {month} expire", r"lot (?P<month>\d{1,6})$"),),
    )


def _react(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    type = recorded.event.type
    if type == POINTS_SPEND_REQUESTED:
        return answer_spend(points, calendar, recorded, known)
    if type == TIMER_FIRED:
        again = rearm_expiry(points, calendar, recorded, known)
        return [*expire(points, calendar, known), *again, *await_next_expiry(points, calendar, known)]
    if type == SPLIT:
        return [*expire(points, calendar, known), *await_next_expiry(points, calendar, known)]
    if type == POINTS_EARNED and recorded.event.source == SOURCE:
        return ()  # its timer was set with it
    if type in (POINTS_ADJUSTED, POINTS_EARNED):
        arm = arm_expiry(points, calendar, calendar.day(recorded.event.occurred_at), known)
        taken = taken_by_operator(recorded)
        return [*expire(points, calendar, known, taken), *arm] if taken else arm
    return _award(points, calendar, recorded, known)


def _award(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    # An event ahead of the clock occurs now: nothing is earned ahead of time.
    at = min(event.occurred_at, recorded.recorded_at)
    table = points.table(at)
    rule = table.by_type.get(event.type)
    if rule is None:
        return ()
    day = calendar.day(at)
    if CLAMPED in event.marks:
        return _flag(known, "impossible_time", day_text(day), at)
    age = _age(recorded)
    if age is not None and age > points.back:
        return ()
    hour = at // HOUR
    if earned_in_hour(known, hour) >= points.events_per_hour:
        return _flag(known, "rate", format_time(hour * HOUR)[:16] + "Z", at)
    if rule.per_day is not None and earned_on_day(known, calendar, rule.name, day) >= rule.per_day:
        return ()
    if rule.cooldown is not None and is_cooling(known, rule.name, rule.cooldown, at):
        return ()
    state: State = known["points"]
    amount, factor = _amount(points, rule, known)
    details: dict[str, Any] = {"points": amount, "rule": rule.name, "table": table.version}
    if factor:
        details |= {"base": rule.points, "times": factor}
    if rule.cooldown is not None:
        details["cooldown"] = rule.cooldown
    today = calendar.day(recorded.recorded_at)
    looked = age is not None and (day < today or str(today) not in state["days"])
    streak = _longest_alive(known) if looked else 0
    if streak:
        details["streak"] = [today, streak]
    wishes: list[Wish] = [Emit(type=POINTS_EARNED, key="earned", occurred_at=at, properties=details)]
    wishes += arm_expiry(points, calendar, day, known)
    if streak and is_jump(state, today, streak):
        wishes += _flag(known, "streak_jump", day_text(today), at)
    if is_spike(state, day, amount, points.spike_times, SPIKE_DAYS_MIN):
        wishes += _flag(known, "points_spike", day_text(day), at)
    return wishes


def _age(recorded: Recorded) -> int | None:
    """How old an event was when it became known; None for history, which has no age.

    Whoever holds no more than a write key is not believed that something is history: with it they could tell any
    number of days of long ago, each with limits of its own.
    """
    event = recorded.event
    if event.historical and CLAIMED_HISTORY not in event.marks:
        return None
    return recorded.recorded_at - event.occurred_at


def _amount(points: Points, rule: Rule, known: PolicyView) -> tuple[int, str]:
    """The points a rule gives this person now, and the factor in them if there is one."""
    subject = Subject(known.view, at=known.at)
    factors = [multiplier.times for multiplier in points.multipliers if multiplier.conditions.test(subject)]
    if not factors:
        return rule.points, ""
    best = max(factors)
    return min(max(multiplied(rule.points, best), 1), AMOUNT_MAX), str(best)


def _longest_alive(known: PolicyView) -> int:
    """How long the longest of the person's streaks is now; looked at once a day, and when an event comes late."""
    view = known.view("streaks")
    lengths = (
        [streak.get("current") for streak in view.values() if isinstance(streak, dict)]
        if isinstance(view, dict)
        else []
    )
    return max((length for length in lengths if type(length) is int), default=0)


def _flag(known: PolicyView, kind: str, of: str, at: int) -> list[Wish]:
    if is_flagged(known, kind, of, at):
        return []
    return [Emit(type=POINTS_ANOMALY_DETECTED, key=kind, occurred_at=at, properties={"kind": kind, "of": of})]
