"""A spend is granted, or refused where the balance is too low."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.profile.points.definition import Points
from threadline.capabilities.profile.points.events import POINTS_REFUSED, POINTS_SPENT, amount_of
from threadline.capabilities.profile.points.expiry import expire
from threadline.capabilities.profile.points.ledger import State, spendable
from threadline.kernel.calendar import Calendar
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Emit, PolicyView, Wish


def answer_spend(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    """`POINTS_SPENT`, or `POINTS_REFUSED` with the reason and the balance."""
    state: State = known["points"]
    wished = amount_of(recorded.event)
    balance = spendable(state, calendar, points.expires_after, known.at)
    properties = recorded.event.properties
    result = {"reason": properties["reason"]} if isinstance(properties.get("reason"), str) else {}
    now = recorded.recorded_at
    if wished is None or wished > balance:
        why = "no_amount" if wished is None else "too_few_points"
        result |= {"why": why, "balance": balance, **({} if wished is None else {"points": wished})}
        return (Emit(type=POINTS_REFUSED, key="refused", occurred_at=now, properties=result),)
    spent = Emit(
        type=POINTS_SPENT,
        key="spent",
        occurred_at=now,
        properties=result | {"points": wished, "balance": balance - wished},
    )
    # What is over its time is booked first: a spend must find it gone in the ledger as well.
    return (*expire(points, calendar, known), spent)
