"""A JSON Schema of the sections ``streaks`` and ``calendar``, for editors that complete and check while you type."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.conditions.forms import WHERE
from threadline.capabilities.features.reading import NAME
from threadline.capabilities.streaks.definition import CADENCES, COUNTINGS, WEEKDAYS
from threadline.kernel.limits import STREAK_MILESTONES_MAX, STREAK_TIMES_MAX
from threadline.kernel.section import Section

_DATE = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$", "examples": ["2026-03-01"]}
_NAME = {"type": "string", "minLength": 1}
_TYPES = {"oneOf": [_NAME, {"type": "array", "items": _NAME, "minItems": 1}]}
_WHOLE = {"type": "integer", "minimum": 1}
_SOURCE = {
    "events": {"$ref": "#/$defs/events"},
    "except": {**_TYPES, "description": "Types that `events: any` leaves out."},
    "where": WHERE,
}
"""Which events; ``#/$defs/events`` is that of features."""


def sections() -> list[Section]:
    """The sections that streaks are declared in."""
    streaks = {
        "type": "object",
        "description": "Streaks by name; false leaves out one that ships.",
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": {"oneOf": [{"const": False}, {"$ref": "#/$defs/streak"}]},
    }
    return [Section("streaks", streaks, {"streak": _streak()}), Section("calendar", _calendar())]


def _object(description: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    fixed = {"type": "object", "description": description, "additionalProperties": False}
    return {**fixed, "properties": properties, **more}


def _streak() -> dict[str, Any]:
    freezes = _object(
        "How missed periods are forgiven.",
        {
            "start": {**_WHOLE, "description": "Held at first."},
            "every": {**_WHOLE, "description": "One more for so many periods done in a row."},
            "max": {**_WHOLE, "description": "How many may be held."},
        },
        required=["max"],
    )
    return _object(
        "Periods in a row in which the person was active often enough.",
        {
            "description": _NAME,
            **_SOURCE,
            "cadence": {"enum": list(CADENCES), "default": "day"},
            "times": {**_WHOLE, "maximum": STREAK_TIMES_MAX, "default": 1, "description": "How often in each period."},
            "counting": {"enum": list(COUNTINGS), "description": "What `times` counts."},
            "grace": {"type": "string", "examples": ["3h"], "description": "Events this late may count for before."},
            "freezes": freezes,
            "milestones": {"type": "array", "items": _WHOLE, "maxItems": STREAK_MILESTONES_MAX},
        },
    )


def _calendar() -> dict[str, Any]:
    amnesty = _object(
        "Local days, both included, that nobody has missed.",
        {"from": _DATE, "to": _DATE, "reason": _NAME, "streaks": _TYPES},
        required=["from", "to"],
    )
    return _object(
        "How days are counted, for all streaks alike.",
        {
            "active": _object("Which events say that the person was active.", dict(_SOURCE), required=["events"]),
            "day_start": {"type": "string", "pattern": r"^\d\d:\d\d$", "default": "00:00", "examples": ["04:00"]},
            "week_starts_on": {"enum": list(WEEKDAYS), "default": "monday"},
            "amnesty": {"type": "array", "items": amnesty},
        },
    )
