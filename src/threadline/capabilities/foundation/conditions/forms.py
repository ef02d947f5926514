"""How conditions are written in a definition: what reads them, and the JSON Schema for editors."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from threadline.capabilities.foundation.conditions.evaluating import Conditions
from threadline.capabilities.foundation.conditions.operators import ALIASES, OPERATORS
from threadline.capabilities.foundation.conditions.reading import read_tree
from threadline.capabilities.foundation.conditions.tree import Node
from threadline.capabilities.foundation.conditions.where import read_where
from threadline.capabilities.foundation.definitions.declaring import Form
from threadline.kernel.limits import CONDITION_TEXT_LENGTH_MAX, CONDITION_VALUES_MAX, CONDITIONS_MAX

T = TypeVar("T")

CONDITION = {"$ref": "#/$defs/condition"}
WHERE = {"$ref": "#/$defs/where"}

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


_TESTS = {name: _OPERANDS[OPERATORS[ALIASES.get(name, name)].operand] for name in (*OPERATORS, *ALIASES)}
_SEVERAL = {"type": "array", "items": CONDITION, "minItems": 1, "maxItems": CONDITIONS_MAX}


def _condition() -> dict[str, Any]:
    field = {
        "description": "The path of a field, as a text with dots or as a list of its steps.",
        "anyOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
        "examples": ["features.monetary_total", "traits.plan", "event.properties.total"],
    }
    test = {
        "type": "object",
        "properties": {"field": field, **_TESTS},
        "required": ["field"],
        "additionalProperties": False,
        "minProperties": 2,
        "maxProperties": 2,
    }
    return {"anyOf": [_alone("all", _SEVERAL), _alone("any", _SEVERAL), _alone("not", CONDITION), test]}


def _where() -> dict[str, Any]:
    tests = {"type": "object", "properties": _TESTS, "additionalProperties": False, "minProperties": 1}
    short = {
        "type": "object",
        "description": "By path in the event: a value, a list of values, or operators; all must hold.",
        "minProperties": 1,
        "additionalProperties": {"oneOf": [_SCALAR, _OPERANDS["list"], tests]},
    }
    return {"description": "Conditions on the event; all must hold.", "oneOf": [short, _SEVERAL]}


DEFS: dict[str, Any] = {"condition": _condition(), "where": _where()}
"""What `CONDITION` and `WHERE` refer to."""


def when(make: Callable[[Node], T], own: Collection[str] = ()) -> Form[T]:
    """What is made of a tree of conditions; ``own`` as for `read_tree`."""
    wanted = "a condition, such as {field: traits.plan, equals: pro}"
    return Form((dict,), wanted, lambda part: make(read_tree(part, own)), CONDITION, DEFS)


WHEN_FORM = when(Conditions)
WHERE_FORM = Form((dict, list), "a mapping such as {category: shoes}, or a list of conditions", read_where, WHERE, DEFS)
