"""The keywords of JSON Schema 2020-12 that a schema may be written with, and what stands under each."""

from __future__ import annotations

from typing import Any, Literal

from threadline.kernel.disclosure import DECLARED_IN_SCHEMA

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
FORMATS = (
    "date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri",
    "iri-reference", "json-pointer", "regex", "relative-json-pointer", "time", "uri", "uri-reference", "uri-template",
    "uuid",
)  # fmt: skip

Holds = Literal["schema", "list", "map"]

INNER: dict[str, Holds] = {
    "$defs": "map", "additionalProperties": "schema", "allOf": "list", "anyOf": "list", "contains": "schema",
    "definitions": "map", "dependentSchemas": "map", "else": "schema", "if": "schema", "items": "schema",
    "not": "schema", "oneOf": "list", "patternProperties": "map", "prefixItems": "list", "properties": "map",
    "propertyNames": "schema", "then": "schema", "unevaluatedItems": "schema", "unevaluatedProperties": "schema",
}  # fmt: skip
"""Keyword -> how schemas stand under it: one, several in a list, or several by name."""

BRANCHES = frozenset({"anyOf", "oneOf"})
"""Those of which one has to fit."""

_NUMBER = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT, "uniqueItems": True}

PLAIN: dict[str, Any] = {
    "$comment": _TEXT, "$ref": {"type": "string", "pattern": "^#(/|$)"}, "const": True, "contentEncoding": _TEXT,
    "contentMediaType": _TEXT, "default": True, "dependentRequired": {"type": "object", "additionalProperties": _TEXTS},
    "deprecated": {"type": "boolean"}, "description": _TEXT, "enum": {"type": "array"}, "examples": {"type": "array"},
    "exclusiveMaximum": _NUMBER, "exclusiveMinimum": _NUMBER, "format": {"enum": list(FORMATS)},
    "maxContains": _COUNT, "maxItems": _COUNT, "maxLength": _COUNT, "maxProperties": _COUNT, "maximum": _NUMBER,
    "minContains": _COUNT, "minItems": _COUNT, "minLength": _COUNT, "minProperties": _COUNT, "minimum": _NUMBER,
    "multipleOf": {"type": "number", "exclusiveMinimum": 0}, "pattern": _TEXT, "readOnly": {"type": "boolean"},
    "required": _TEXTS, "title": _TEXT,
    "type": {"anyOf": [{"enum": list(TYPES)}, {"type": "array", "items": {"enum": list(TYPES)}, "minItems": 1}]},
    "uniqueItems": {"type": "boolean"}, "writeOnly": {"type": "boolean"},
}  # fmt: skip
"""Keyword -> the JSON Schema of what stands under it, for all under which no schemas stand."""

OUTERMOST = {"$id": _TEXT, "$schema": {"const": DIALECT}}
"""Those that may stand in the outermost schema only."""

OWN = "x-"
"""What begins so is a user's own and means nothing here, but for `DECLARED_IN_SCHEMA`."""


def definition(reference: str, *, outermost: bool) -> dict[str, Any]:
    """JSON Schema, for editors, of a schema whose inner ones are described at a reference."""
    inner: dict[Holds, Any] = {
        "schema": {"$ref": reference},
        "list": {"type": "array", "items": {"$ref": reference}, "minItems": 1},
        "map": {"type": "object", "additionalProperties": {"$ref": reference}},
    }
    return {
        "type": "object" if outermost else ["object", "boolean"],
        "properties": {
            **PLAIN,
            **{name: inner[holds] for name, holds in INNER.items()},
            **(OUTERMOST if outermost else {}),
            DECLARED_IN_SCHEMA: {"type": "boolean", "description": "Whether agents are not shown the property."},
        },
        "patternProperties": {f"^{OWN}": True},
        "additionalProperties": False,
    }
