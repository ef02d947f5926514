"""A JSON Schema of the section ``memory``, for editors that complete and check while you type."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.conditions.forms import DEFS, WHERE
from threadline.capabilities.memory.definition import AGGREGATES, PERMANENT, SOURCES, TYPES
from threadline.capabilities.memory.reading import NAME
from threadline.kernel.limits import FACTS_OF_DERIVATION_MAX
from threadline.kernel.section import Section

_PATH = {"type": "string", "minLength": 1, "examples": ["total", "order.total", "name|product_name"]}
_NAMED_PATHS = {"type": "object", "additionalProperties": _PATH}
_EVENT = {"type": "string", "minLength": 1}
_DURATION = {"type": "string", "pattern": "^([0-9]{1,9}(us|ms|s|m|h|d|w|y))+$", "examples": ["30d", "1y"]}


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _events() -> dict[str, Any]:
    options = _object(
        {
            "where": WHERE,
            "set": {
                "type": "object",
                "description": "Constants that events of this type put into the value.",
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            },
        }
    )
    mapped = {"type": "object", "minProperties": 1, "additionalProperties": {"oneOf": [{"type": "null"}, options]}}
    return {"oneOf": [_EVENT, {"type": "array", "items": _EVENT, "minItems": 1}, mapped]}


def _value() -> dict[str, Any]:
    field = _object(
        {
            "aggregate": {"enum": list(AGGREGATES)},
            "of": _PATH,
            "times": {**_PATH, "description": "A factor of a sum, such as a quantity."},
            "currency": {**_PATH, "description": "Keeps a sum per currency."},
        }
    )
    fields = {"type": "object", "minProperties": 1, "additionalProperties": {"oneOf": [_PATH, field]}}
    return {"oneOf": [_PATH, fields], "description": "A path, or fields, each a path or an aggregate."}


def _derivation() -> dict[str, Any]:
    return _object(
        {
            "description": {"type": "string", "minLength": 1},
            "events": _events(),
            "where": WHERE,
            "each": {**_PATH, "description": "A list or mapping in the event: every entry makes a fact."},
            "otherwise": {**_NAMED_PATHS, "description": "The one entry, made of the event, where `each` is absent."},
            "fact": {
                "type": "string",
                "pattern": f"^({'|'.join(TYPES)}|\\{{[^{{}}]+\\}})/.+$",
                "examples": ["preference/colour", "purchase/product:{product_id}", "form/{form}:{question:slug}"],
            },
            "source": {"enum": list(SOURCES), "default": "event_derived"},
            "value": _value(),
            "says": {**_PATH, "description": "A value of which each source's newest word is kept apart."},
            "confidence": {"oneOf": [_PATH, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]},
            "expires_after": {**_DURATION, "description": "After the newest event that made the fact."},
            "expires_at": _PATH,
            "recalled": {**_PATH, "description": "Where an event names facts that are not taken from it again."},
            "derived_from": {**_PATH, "description": "Where an event names the facts that its own rests on."},
            "most": {"type": "integer", "minimum": 1, "maximum": FACTS_OF_DERIVATION_MAX, "default": 100},
            "version": {"type": "integer", "minimum": 1, "default": 1},
        },
        required=["events", "fact"],
        oneOf=[{"required": ["value"]}, {"required": ["says"]}],
    )


SECTION = Section(
    "memory",
    {
        "type": "object",
        "description": "Derivations of facts by name; false leaves out one that ships.",
        "propertyNames": {"pattern": f"^{NAME.pattern}$", "not": {"enum": list(PERMANENT)}},
        "additionalProperties": {"oneOf": [{"const": False}, {"$ref": "#/$defs/derivation"}]},
    },
    {"derivation": _derivation(), **DEFS},
)
