"""The event types of the ledger. Over a wire none of them counts: a write key must not mint points."""

from __future__ import annotations

from threadline.kernel.event import Event
from threadline.kernel.lasting import Lasting, for_life

POINTS_EARNED = "points_earned"
"""An event earned ``points`` by the ``rule`` of the ``table`` in force; its cause is that event."""
POINTS_SPEND_REQUESTED = "points_spend_requested"
"""The person wants to spend ``points``, for a ``reason``. What comes of it is in the same commit."""
POINTS_SPENT = "points_spent"
"""The wish was granted: ``points`` are gone; ``balance`` is what was left."""
POINTS_REFUSED = "points_refused"
"""The wish was not granted: ``points`` were asked for, ``balance`` was there; ``why`` says what was wrong."""
POINTS_ADJUSTED = "points_adjusted"
"""An operator gave ``points``, or took them if they are negative, for a ``reason``."""
POINTS_EXPIRED = "points_expired"
"""``points`` were not spent in time."""
POINTS_ANOMALY_DETECTED = "points_anomaly_detected"
"""Something looks wrong: its ``kind``, and ``of`` which hour or day. Nothing is refused because of it."""

LEDGER = frozenset({POINTS_EARNED, POINTS_SPENT, POINTS_ADJUSTED, POINTS_EXPIRED})
"""The lines of the ledger: the balance is their sum."""
OWN = LEDGER | {POINTS_SPEND_REQUESTED, POINTS_REFUSED, POINTS_ANOMALY_DETECTED}
"""All of the above: none of them can earn points."""

AMOUNT_MAX = 10**12
"""Points of one line."""


def is_trusted(event: Event) -> bool:
    """Whether an event may move points: Threadline emitted it, or this process recorded it, such as an import."""
    return event.source_type != "external"


def amount_of(event: Event) -> int | None:
    """The points of a ledger event: a whole number that is not 0 and not too large; None for anything else."""
    points = event.properties.get("points")
    if type(points) is not int or not -AMOUNT_MAX <= points <= AMOUNT_MAX or points == 0:
        return None
    return points if points > 0 or event.type == POINTS_ADJUSTED else None


LASTING = Lasting(
    "points",
    for_life(LEDGER, "the balance is made of them, and points would be spent again")
    | {POINTS_ANOMALY_DETECTED: "without it the same anomaly would be reported again"},
    made=OWN,
)
