"""The JSON Schema of the section ``leaderboards``, for editors that complete and check while you type."""

from __future__ import annotations

from threadline.capabilities.features.reading import NAME
from threadline.capabilities.leaderboards.definition import KEPT
from threadline.kernel.section import Section

_TEXT = {"type": "string", "minLength": 1}
_PERIOD = {"enum": list(KEPT)}

LEADERBOARDS_SECTION = Section(
    "leaderboards",
    {
        "type": "object",
        "description": "Leaderboards by name.",
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": {"$ref": "#/$defs/leaderboard"},
    },
    {
        "leaderboard": {
            "type": "object",
            "properties": {
                "score": {
                    **_TEXT,
                    "description": "The number that is ranked.",
                    "examples": ["points.earned", "points.balance", "streaks.daily.current", "features.monetary_total"],
                },
                "periods": {"oneOf": [_PERIOD, {"type": "array", "items": _PERIOD}], "default": "all"},
                "per": {**_TEXT, "description": "A trait: everybody is ranked among those with the same value, too."},
                "tags": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}], "description": "Boards of their own."},
                "segments": {
                    "oneOf": [_TEXT, {"type": "array", "items": _TEXT}],
                    "description": "Declared segments: their members are ranked among themselves, too.",
                },
                "description": _TEXT,
            },
            "required": ["score"],
            "additionalProperties": False,
        }
    },
)
