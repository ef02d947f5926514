"""The event types of the ledger. A write key must not mint points, so none of them counts over a wire."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.kernel.event import Event
from threadline.kernel.event_type import EventType, Maybe, Properties

POINTS_EARNED = "points_earned"
POINTS_SPEND_REQUESTED = "points_spend_requested"
POINTS_SPENT = "points_spent"
POINTS_REFUSED = "points_refused"
POINTS_ADJUSTED = "points_adjusted"
POINTS_EXPIRED = "points_expired"
POINTS_ANOMALY_DETECTED = "points_anomaly_detected"

LEDGER = frozenset({POINTS_EARNED, POINTS_SPENT, POINTS_ADJUSTED, POINTS_EXPIRED})
"""The lines of the ledger: the balance is their sum."""
OWN = LEDGER | {POINTS_SPEND_REQUESTED, POINTS_REFUSED, POINTS_ANOMALY_DETECTED}
"""All of the above: none of them can earn points."""

AMOUNT_MAX = 10**12
"""Points of one line."""


class _Line(Properties):
    points: Annotated[int, Meta(description="How many.")]


class _Earned(_Line, rename={"before": "base"}):
    rule: Maybe[Annotated[str, Meta(description="The rule that granted them.")]] = UNSET
    table: Maybe[Annotated[str, Meta(description="The version of the table that was in force.")]] = UNSET
    before: Maybe[Annotated[int, Meta(description="The rule's points, where a factor applied.")]] = UNSET
    times: Maybe[Annotated[Any, Meta(description="That factor.")]] = UNSET
    cooldown: Maybe[Annotated[int, Meta(description="How long the rule grants nothing more, in microseconds.")]] = UNSET
    streak: Maybe[Annotated[list[int], Meta(description="The day, and the longest streak alive then.")]] = UNSET


class _Reasoned(_Line):
    reason: Maybe[Annotated[str, Meta(description="What for.")]] = UNSET


class _Spent(_Reasoned):
    balance: Maybe[Annotated[int, Meta(description="What was left.")]] = UNSET


class _Refused(Properties):
    why: Annotated[str, Meta(description="What was wrong: `too_few_points` or `no_amount`.")]
    balance: Annotated[int, Meta(description="What was there.")]
    points: Maybe[Annotated[int, Meta(description="How many were asked for.")]] = UNSET
    reason: Maybe[Annotated[str, Meta(description="What for.")]] = UNSET


class _Anomaly(Properties):
    kind: Annotated[str, Meta(description="What looks wrong.")]
    of: Annotated[str, Meta(description="Of which hour or day.")]


EVENT_TYPES = (
    EventType(
        POINTS_EARNED,
        "An event earned points by a rule; that event is its cause.",
        _Earned,
        speaker="process",
        sentence="Earned {points} points for {rule}",
        shown=("rule", "table"),
    ),
    EventType(
        POINTS_SPEND_REQUESTED,
        "The person wants to spend points. The answer is in the same commit.",
        _Reasoned,
        speaker="process",
        sentence="Asked to spend {points} points",
    ),
    EventType(
        POINTS_SPENT,
        "A request to spend points was granted: they are gone.",
        _Spent,
        speaker="process",
        sentence="Spent {points} points, {balance} left",
    ),
    EventType(
        POINTS_REFUSED,
        "A request to spend points was not granted.",
        _Refused,
        speaker="process",
        sentence="{points} points were not spent: {why}",
    ),
    EventType(
        POINTS_ADJUSTED,
        "An operator gave points, or took them if they are negative.",
        _Reasoned,
        speaker="process",
        sentence="Balance changed by {points} points: {reason}",
    ),
    EventType(
        POINTS_EXPIRED,
        "Points were not spent in time.",
        _Line,
        speaker="process",
        sentence="{points} points expired",
    ),
    EventType(
        POINTS_ANOMALY_DETECTED,
        "Something looks wrong. Nothing is refused because of it.",
        _Anomaly,
        speaker="process",
        sentence="Unusual points: {kind}",
        shown=("kind", "of"),
    ),
)


def amount_of(event: Event) -> int | None:
    """The points of a ledger event: a whole number that is not 0 and not too large; None for anything else."""
    points = event.properties.get("points")
    if type(points) is not int or not -AMOUNT_MAX <= points <= AMOUNT_MAX or points == 0:
        return None
    return points if points > 0 or event.type == POINTS_ADJUSTED else None
