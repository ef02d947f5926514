"""A year of days as squares: where each stands in the picture, and how dark it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

STEP = 14
LEFT, TOP = 30, 18
WEEKS = 53
LEVELS = 4


def year_of_days(days: Sequence[Mapping[str, Any]], stop: date) -> dict[str, Any]:
    """Squares for the 53 weeks that end on the day before ``stop``, weeks from left to right, from Monday down."""
    by_date = {entry["date"]: entry for entry in days}
    most = max((entry["events"] for entry in days), default=0)
    last = stop - timedelta(days=1)
    first = last - timedelta(days=last.weekday() + 7 * (WEEKS - 1))
    squares, months = [], []
    for number in range((stop - first).days):
        day = first + timedelta(days=number)
        week, weekday = divmod(number, 7)
        done = by_date.get(day.isoformat(), {"events": 0, "points": 0})
        level = -(-done["events"] * LEVELS // most) if done["events"] else 0
        squares.append(
            {"x": LEFT + week * STEP, "y": TOP + weekday * STEP, "level": level, "date": day.isoformat(), **done}
        )
        if day.day == 1 and week < WEEKS - 1:
            months.append({"x": LEFT + week * STEP, "name": f"{day:%b}"})
    return {
        "squares": squares,
        "months": months,
        "width": LEFT + WEEKS * STEP,
        "height": TOP + 7 * STEP,
        "most": most,
        "start": first.isoformat(),
        "stop": stop.isoformat(),
        "active": sum(1 for square in squares if square["events"]),
        "earlier": first.isoformat(),
        "later": (stop + timedelta(weeks=WEEKS)).isoformat(),
    }
