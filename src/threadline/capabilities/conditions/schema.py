"""The JSON Schema of a tree of conditions, for editors that check while you type."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.conditions.operators import OPERATORS
from threadline.kernel.limits import CONDITION_TEXT_LENGTH_MAX, CONDITION_VALUES_MAX, CONDITIONS_MAX

CONDITION = {"$ref": "#/$defs/condition"}

_TEXT = {"type": "string", "maxLength": CONDITION_TEXT_LENGTH_MAX}
_SCALAR = {"type": ["string", "number", "boolean"]}
_OPERANDS: dict[str, dict[str, Any]] = {
    "scalar": _SCALAR,
    "orderable": {"type": ["string", "number"]},
    "text": _TEXT,
    "list": {"type": "array", "items": _SCALAR, "minItems": 1, "maxItems": CONDITION_VALUES_MAX},
    "flag": {"type": "boolean"},
}


def _alone(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}


def _condition() -> dict[str, Any]:
    field = {
        "description": "The path of a field, as a text with dots or as a list of its steps.",
        "anyOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
        "examples": ["features.monetary_total", "traits.plan", "event.properties.total"],
    }
    several = {"type": "array", "items": CONDITION, "minItems": 1, "maxItems": CONDITIONS_MAX}
    test = {
        "type": "object",
        "properties": {"field": field, **{name: _OPERANDS[kind] for name, (kind, _) in OPERATORS.items()}},
        "required": ["field"],
        "additionalProperties": False,
        "minProperties": 2,
        "maxProperties": 2,
    }
    return {"anyOf": [_alone("all", several), _alone("any", several), _alone("not", CONDITION), test]}


DEFS: dict[str, Any] = {"condition": _condition()}
"""What `CONDITION` refers to."""
