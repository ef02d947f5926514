"""Points that expire: the timers of their months, and what is booked when one is over."""

from __future__ import annotations

from threadline.capabilities.profile.points.definition import Points
from threadline.capabilities.profile.points.events import AMOUNT_MAX, POINTS_EXPIRED, amount_of
from threadline.capabilities.profile.points.ledger import State, lot_ends, overdue
from threadline.kernel.calendar import Calendar, month_of
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Emit, PolicyView, Timer, Wish


def arm_expiry(points: Points, calendar: Calendar, day: int, known: PolicyView) -> list[Wish]:
    """A timer for the month that points come in, set once."""
    if points.expires_after is None:
        return []
    month = month_of(day)
    # What comes in when its month's time is up already is booked at once; the timer of that time may have fired.
    due_at = max(lot_ends(calendar, month, points.expires_after), known.at)
    return [Timer(key=f"lot {month}", due_at=due_at, data={"month": month}, unless_earlier=True)]


def rearm_expiry(points: Points, calendar: Calendar, recorded: Recorded, known: PolicyView) -> list[Wish]:
    """The same timer again, where it fired for a time that has been declared longer since."""
    month = recorded.event.properties["data"]["month"]
    assert points.expires_after is not None
    due_at = lot_ends(calendar, month, points.expires_after)
    return [Timer(key=f"lot {month}", due_at=due_at, data={"month": month})] if due_at >= known.at else []


def await_next_expiry(points: Points, calendar: Calendar, known: PolicyView) -> list[Wish]:
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


def taken_by_operator(recorded: Recorded) -> int:
    """How many points an operator has just taken. Of an imported ledger each line is what it was."""
    amount = amount_of(recorded.event) if not recorded.event.is_activity else None
    return max(0, -(amount or 0))


def expire(points: Points, calendar: Calendar, known: PolicyView, taken: int = 0) -> list[Wish]:
    """`POINTS_EXPIRED` for what is over its time, less what an operator has ``taken`` just now."""
    state: State = known["points"]
    # What was over its time was gone before an operator took any.
    amount = overdue(state, calendar, points.expires_after, known.at, taken)
    if not amount or points.expires_after is None:
        return []
    ends = (lot_ends(calendar, int(month), points.expires_after) for month in state["lots"])
    at = max((end for end in ends if end <= known.at), default=known.at - 1)
    return [Emit(type=POINTS_EXPIRED, key="expired", occurred_at=at, properties={"points": min(amount, AMOUNT_MAX)})]
