"""The JSON Schema of the section ``points``, for editors that complete and check while you type."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.points.definition import EVENTS_PER_HOUR, SPIKE_TIMES
from threadline.capabilities.points.loading import POINTS_MAX
from threadline.kernel.section import Section

_DURATION = {"type": "string", "pattern": "^([0-9]{1,9}(us|ms|s|m|h|d|w|y))+$"}
_POINTS = {"type": "integer", "minimum": 1, "maximum": POINTS_MAX}
_COUNT = {"type": "integer", "minimum": 1}
_TYPE = {"type": "string", "minLength": 1}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_RULE = _object(
    {
        "points": _POINTS,
        "also": {"oneOf": [_TYPE, {"type": "array", "items": _TYPE}], "description": "Further types, one cap for all."},
        "per_day": {**_COUNT, "description": "How often it earns in a day."},
        "cooldown": {**_DURATION, "description": "How far apart two events that earn must be."},
    },
    ["points"],
)
_TABLE = _object(
    {
        "version": {"type": ["string", "integer"], "description": "Told in every line that the table makes."},
        "from": {"type": "string", "description": "The instant from which it is in force, RFC 3339."},
        "earn": {
            "type": "object",
            "description": "Points by event type, over the table before; false leaves one out.",
            "additionalProperties": {"oneOf": [{"const": False}, _POINTS, {"$ref": "#/$defs/points_rule"}]},
        },
    },
    ["version"],
)
_MULTIPLIER = _object(
    {
        "by": {"type": "string", "description": "A number in a view.", "examples": ["streaks.daily.current"]},
        "from": {"type": ["number", "string"], "description": "From which value on."},
        "times": {"type": ["number", "string"], "description": "The factor; the largest that applies counts."},
    },
    ["by", "from", "times"],
)
_POINTS_SECTION = _object(
    {
        "tables": {"type": "array", "items": {"$ref": "#/$defs/points_table"}},
        "multipliers": {"type": "array", "items": _MULTIPLIER},
        "events_per_hour": {**_COUNT, "default": EVENTS_PER_HOUR, "description": "Events that may earn in an hour."},
        "back": {**_DURATION, "default": "7d", "description": "How old an event may be when it becomes known."},
        "spike_times": {
            **_COUNT,
            "default": SPIKE_TIMES,
            "description": "A day above so many times the mean is flagged.",
        },
        "expires_after": {**_DURATION, "description": "After the end of their month; without it points never expire."},
    },
    [],
)

POINTS_SECTION = Section(
    "points",
    {"description": "What earns points; false for none at all.", "oneOf": [{"const": False}, _POINTS_SECTION]},
    {"points_rule": _RULE, "points_table": _TABLE},
)
