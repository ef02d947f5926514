"""A JSON Schema of the definitions' language, for editors that complete and check while you type."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.conditions.forms import DEFS, WHERE
from threadline.capabilities.features.definition import AGGREGATES
from threadline.capabilities.features.reading import NAME, allowed_keys
from threadline.kernel.section import Section

_DURATION = {"type": "string", "pattern": "^([0-9]{1,9}(us|ms|s|m|h|d|w|y))+$", "examples": ["30d", "12h", "1y"]}
_PATH = {"type": "string", "minLength": 1, "examples": ["total", "order.total", "context.ip"]}
_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_CURRENCY = {"type": "string", "pattern": "^[A-Z]{1,8}$", "examples": ["USD"]}


def sections() -> list[Section]:
    """The sections that features are declared in."""
    features = {
        "type": "object",
        "description": "Features by name; false leaves out one that ships.",
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": {"oneOf": [{"const": False}, {"$ref": "#/$defs/feature"}]},
    }
    currencies = _object(
        "How amounts of several currencies become one.",
        {
            "total_in": {**_CURRENCY, "description": "The currency of totals."},
            "default": {**_CURRENCY, "description": "The currency of amounts that name none."},
            "rates": {
                "type": "object",
                "description": "How much of total_in one unit of each currency is.",
                "propertyNames": _CURRENCY,
                "additionalProperties": {"type": ["string", "number"], "examples": ["1.08"]},
            },
        },
    )
    timezone = {"type": "string", "description": "IANA zone of events that name none.", "default": "UTC"}
    ignored_after = {"ignored_after": {**_DURATION, "default": "7d"}}
    return [
        Section("features", features, {"feature": _feature(), "events": _events(), **DEFS}),
        Section("currencies", currencies),
        Section("timezone", timezone),
        Section("campaigns", _object("When a campaign counts as ignored.", ignored_after)),
    ]


def _feature() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["aggregate"],
        "properties": {"aggregate": {"enum": list(AGGREGATES)}},
        "allOf": [_when(aggregate) for aggregate in AGGREGATES],
    }


def _object(description: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": False,
        **more,
    }


def _when(aggregate: str) -> dict[str, Any]:
    keys = allowed_keys(aggregate)
    options = _options()
    required = {"ratio": ["numerator", "denominator"], "score": ["parts"]}.get(aggregate, ["events"])
    then = {
        "description": AGGREGATES[aggregate].meaning,
        "properties": {key: options[key] for key in keys},
        "required": required,
        "additionalProperties": False,
    }
    return {"if": {"properties": {"aggregate": {"const": aggregate}}, "required": ["aggregate"]}, "then": then}


def _options() -> dict[str, Any]:
    side = {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/feature"}]}
    part = _object(
        "weight × x ÷ (x + half); weight × half ÷ (x + half) if falling.",
        {
            "weight": {"type": "number", "exclusiveMinimum": 0},
            "half": {"type": "number", "exclusiveMinimum": 0},
            "falling": {"type": "boolean", "default": False},
        },
        required=["weight", "half"],
    )
    return {
        "aggregate": {"description": "How events become a value."},
        "events": {"$ref": "#/$defs/events"},
        "except": {**_types(), "description": "Types that `events: any` leaves out."},
        "where": WHERE,
        "of": {**_PATH, "description": "Path of the value in each event."},
        "currency": {**_PATH, "description": "Path of the currency; makes the value money."},
        "window": {
            "oneOf": [{"const": "lifetime"}, _DURATION],
            "default": "lifetime",
            "description": "Half-open: [now − window, now), 1m to 10y.",
        },
        "empty": {**_SCALAR, "description": "The value where there is nothing to compute."},
        "unit": {"type": "string", "minLength": 1},
        "description": {"type": "string", "minLength": 1},
        "version": {"type": "integer", "minimum": 1, "default": 1},
        "stale_after": {**_DURATION, "description": "STALE once the newest event of its own is older."},
        "numerator": side,
        "denominator": side,
        "parts": {"type": "object", "minProperties": 1, "additionalProperties": part},
    }


def _types() -> dict[str, Any]:
    name = {"type": "string", "minLength": 1}
    return {"oneOf": [name, {"type": "array", "items": name, "minItems": 1}]}


def _events() -> dict[str, Any]:
    options = _object(
        "How this type feeds the feature.",
        {
            "value": {**_PATH, "description": "Path of the value in this type; `of` where it is absent."},
            "sign": {"enum": [1, -1], "default": 1},
            "where": WHERE,
        },
    )
    mapped = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"oneOf": [{"type": "null"}, options]},
    }
    return {"oneOf": [*_types()["oneOf"], mapped], "description": "The types that feed it; any for every type."}
