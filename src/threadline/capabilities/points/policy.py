"""The policy ``points``: what an event earns, what a spend comes to, what expires, what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from threadline.capabilities.conditions import Subject
from threadline.capabilities.points.calendar import Calendar, day_text, month_of
from threadline.capabilities.points.definition import SPIKE_DAYS_MIN, Points, Rule, multiplied
from threadline.capabilities.points.events import (
    AMOUNT_MAX,
    POINTS_ADJUSTED,
    POINTS_ANOMALY_DETECTED,
    POINTS_EARNED,
    POINTS_EXPIRED,
    POINTS_REFUSED,
    POINTS_SPEND_REQUESTED,
    POINTS_SPENT,
    amount_of,
    is_trusted,
)
from threadline.capabilities.points.ledger import State, is_jump, is_spike, lot_ends, overdue, spendable
from threadline.capabilities.points.used import earned_in_hour, earned_on_day, is_cooling, is_flagged
from threadline.kernel.event import CLAIMED_HISTORY, CLAMPED, Recorded
from threadline.kernel.identity import SPLIT
from threadline.kernel.policy import TIMER_FIRED, Emit, Policy, PolicyView, Read, Timer, Wish, source_of
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
            *(Read(each.path[0], each.path[1:], each.path_place) for each in points.multipliers),
        ),
        react=partial(_react, points, Calendar(points.timezone)),
    )


def _react(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    type = recorded.event.type
    if type == POINTS_SPEND_REQUESTED:
        return _answer(points, calendar, recorded, known) if is_trusted(recorded.event) else ()
    if type == TIMER_FIRED:
        again = _rearm(points, calendar, recorded, known)
        return [*_expire(points, calendar, known), *again, *_await_next(points, calendar, known)]
    if type == SPLIT:
        return [*_expire(points, calendar, known), *_await_next(points, calendar, known)]
    if type == POINTS_EARNED and (recorded.event.source == SOURCE or not is_trusted(recorded.event)):
        return ()  # its timer was set with it, or it moves nothing
    if type in (POINTS_ADJUSTED, POINTS_EARNED):
        arm = _arm(points, calendar, calendar.day(recorded.event.occurred_at), known)
        return [*_expire(points, calendar, known, _taken(recorded)), *arm] if _taken(recorded) else arm
    return _award(points, calendar, recorded, known)


# --- earning --------------------------------------------------------------------------------


def _award(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    # What is told to happen later today has happened by now: nothing is earned ahead of time.
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
    said: dict[str, Any] = {"points": amount, "rule": rule.name, "table": table.version}
    if factor:
        said |= {"base": rule.points, "times": factor}
    if rule.cooldown is not None:
        said["cooldown"] = rule.cooldown
    today = calendar.day(recorded.recorded_at)
    looked = age is not None and (day < today or str(today) not in state["days"])
    streak = _longest_alive(known) if looked else 0
    if streak:
        said["streak"] = [today, streak]
    wishes: list[Wish] = [Emit(type=POINTS_EARNED, key="earned", occurred_at=at, properties=said)]
    wishes += _arm(points, calendar, day, known)
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
    subject = Subject(known.view)
    factors = [each.times for each in points.multipliers if each.conditions.test(subject)]
    if not factors:
        return rule.points, ""
    best = max(factors)
    return min(max(multiplied(rule.points, best), 1), AMOUNT_MAX), str(best)


def _longest_alive(known: PolicyView) -> int:
    """How long the longest of the person's streaks is now; looked at once a day, and when an event comes late."""
    view = known.view("streaks")
    lengths = (
        [each.get("current") for each in view.values() if isinstance(each, dict)] if isinstance(view, dict) else []
    )
    return max((length for length in lengths if type(length) is int), default=0)


def _flag(known: PolicyView, kind: str, of: str, at: int) -> list[Wish]:
    if is_flagged(known, kind, of, at):
        return []
    return [Emit(type=POINTS_ANOMALY_DETECTED, key=kind, occurred_at=at, properties={"kind": kind, "of": of})]


# --- spending -------------------------------------------------------------------------------


def _answer(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    state: State = known["points"]
    wished = amount_of(recorded.event)
    balance = spendable(state, calendar, points.expires_after, known.at)
    properties = recorded.event.properties
    said = {"reason": properties["reason"]} if isinstance(properties.get("reason"), str) else {}
    now = recorded.recorded_at
    if wished is None or wished > balance:
        why = "no_amount" if wished is None else "too_few_points"
        said |= {"why": why, "balance": balance, **({} if wished is None else {"points": wished})}
        return (Emit(type=POINTS_REFUSED, key="refused", occurred_at=now, properties=said),)
    spent = Emit(
        type=POINTS_SPENT,
        key="spent",
        occurred_at=now,
        properties=said | {"points": wished, "balance": balance - wished},
    )
    # What is over its time is booked first: a spend must find it gone in the ledger as well.
    return (*_expire(points, calendar, known), spent)


# --- expiry ---------------------------------------------------------------------------------


def _arm(points: Points, calendar: Calendar, day: int, known: PolicyView) -> list[Wish]:
    """A timer for the month that points come in, set once."""
    if points.expires_after is None:
        return []
    month = month_of(day)
    # What comes in when its month's time is up already is booked at once; the timer of that time may have fired.
    due_at = max(lot_ends(calendar, month, points.expires_after), known.at)
    return [Timer(key=f"lot {month}", due_at=due_at, data={"month": month}, unless_earlier=True)]


def _rearm(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> list[Wish]:
    """The same timer again, where it fired for a time that has been declared longer since."""
    month = recorded.event.properties["data"]["month"]
    assert points.expires_after is not None
    due_at = lot_ends(calendar, month, points.expires_after)
    return [Timer(key=f"lot {month}", due_at=due_at, data={"month": month})] if due_at >= known.at else []


def _await_next(points: Points, calendar: Calendar, known: PolicyView) -> list[Wish]:
    """A timer for the next month that ends, unless there is one.

    Two who are joined have a timer for each month that either earned in, and a month in which they earn together has
    one for both. When they are parted again it stays with one of them; the other begins anew, month after month.
    """
    assert points.expires_after is not None
    lots = known["points"]["lots"]
    ends = {lot_ends(calendar, int(month), points.expires_after): int(month) for month in lots}
    first = min((end for end in ends if end > known.at), default=None)
    if first is None:
        return []
    return [Timer(key=f"lot {ends[first]}", due_at=first, data={"month": ends[first]}, unless_pending=True)]


def _taken(recorded: Recorded) -> int:
    """How many points an operator has just taken. Of an imported ledger each line is what it was."""
    amount = amount_of(recorded.event) if recorded.event.source_type == "internal" else None
    return max(0, -(amount or 0))


def _expire(points: Points, calendar: Calendar, known: PolicyView, taken: int = 0) -> list[Wish]:
    state: State = known["points"]
    # What was over its time was gone before an operator took any.
    amount = overdue(state, calendar, points.expires_after, known.at, taken)
    if not amount or points.expires_after is None:
        return []
    ends = (lot_ends(calendar, int(month), points.expires_after) for month in state["lots"])
    at = max((end for end in ends if end <= known.at), default=known.at - 1)
    return [Emit(type=POINTS_EXPIRED, key="expired", occurred_at=at, properties={"points": min(amount, AMOUNT_MAX)})]
