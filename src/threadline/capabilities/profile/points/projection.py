"""The projection ``points``: balance, lifetime earned, the days of the ledger and what looked wrong."""

from __future__ import annotations

from functools import partial
from typing import Any

from threadline.capabilities.profile.points.definition import Points
from threadline.capabilities.profile.points.events import (
    LEDGER,
    OWN,
    POINTS_ANOMALY_DETECTED,
)
from threadline.capabilities.profile.points.ledger import (
    EARNED,
    EXPIRED,
    GIVEN,
    SPENT,
    TAKEN,
    State,
    empty,
    fold,
    merge,
    next_expiry,
    overdue,
    spendable,
)
from threadline.kernel.calendar import Calendar, day_text
from threadline.kernel.event import Recorded
from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views
from threadline.kernel.projection import Depends, Faster, Projection
from threadline.kernel.time import format_time
from threadline.kernel.view_parts import Parts, values


def points_projection(points: Points) -> Projection:
    """The projection. Of what is declared only the calendar shapes the state; expiry is applied at reading."""
    calendar = Calendar(points.timezone)
    zone = "" if points.timezone == "UTC" else points.timezone.replace(" ", "_")
    return Projection(
        name="points",
        version=1,
        handles=LEDGER | {POINTS_ANOMALY_DETECTED},
        empty=empty,
        fold=partial(fold, calendar),
        view=partial(_view, calendar, points.expires_after),
        faster=Faster(merge=merge),
        never_ahead=LEDGER,
        depends=Depends(due=partial(_due, calendar, points.expires_after), parts=_PARTS),
        in_parts=True,
        fingerprint=zone,
        carries={"": zone},
    )


_SUMS = ("balance", "earned", "spent", "adjusted", "expired")
_PARTS = Parts(values(*_SUMS, "days", "anomalies") | {"expires_next": Parts(values("at", "points"))})


def _view(
    calendar: Calendar, expires_after: int | None, state: State, now: int, edges: list[Recorded]
) -> dict[str, Any]:
    sums = state["sums"]
    following = next_expiry(state, calendar, expires_after, now)
    names = ("earned", "spent", "adjusted", "expired")
    flags = sorted(state["flags"].items(), key=lambda flag: (flag[1], flag[0]), reverse=True)
    return {
        "balance": spendable(state, calendar, expires_after, now),
        "earned": sums[EARNED],
        "spent": sums[SPENT],
        "adjusted": sums[GIVEN] - sums[TAKEN],
        "expired": sums[EXPIRED] + overdue(state, calendar, expires_after, now),
        "expires_next": None if following is None else {"at": format_time(following[0]), "points": following[1]},
        "days": [
            {"day": day_text(day), **dict(zip(names, state["days"][str(day)], strict=True))}
            for day in sorted(map(int, state["days"]), reverse=True)
        ],
        "anomalies": [
            {"kind": name.partition("/")[0], "of": name.partition("/")[2], "at": format_time(at)} for name, at in flags
        ],
    }


def _due(calendar: Calendar, expires_after: int | None, state: State, now: int) -> int | None:
    following = next_expiry(state, calendar, expires_after, now)
    return None if following is None else following[0]


POINTS_FILE = PersonFile(
    "points",
    "Your points",
    "The balance, and every line of the ledger: what was earned, spent, put right or has expired, and why.",
    joined(shown_views("points"), shown_events(*OWN)),
    ("points",),
)
