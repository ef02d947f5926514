"""The JSON Schema of the sections ``rules`` and ``rule_sets``, for editors that check while you type."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.conditions.forms import CONDITION, DEFS
from threadline.capabilities.rules.actions import KINDS, SYNONYMS, Kind
from threadline.capabilities.rules.definition import NAME, VERSION_MAX
from threadline.capabilities.rules.model_reading import DROPPED
from threadline.capabilities.rules.reading import PRIORITY_MAX, SET_EVENTS_MAX
from threadline.kernel.limits import (
    ACTIONS_MAX,
    EVENT_TYPE_LENGTH_MAX,
    MODEL_INPUTS_MAX,
    MODEL_NODES_MAX,
    RULE_DESCRIPTION_LENGTH_MAX,
    RULE_NAME_LENGTH_MAX,
    RULE_SETS_MAX,
    RULES_MAX,
)
from threadline.kernel.section import Section

_NAME = {"type": "string", "pattern": f"^{NAME.pattern}$"}
_TIME = {"type": "string", "examples": ["2026-03-01", "2026-03-01T12:00:00Z"]}
_DESCRIPTION = {"type": "string", "maxLength": RULE_DESCRIPTION_LENGTH_MAX}


def _action(kind: Kind) -> dict[str, Any]:
    params: dict[str, Any] = {name: {} for name in kind.params}
    required = [name for name, param in kind.params.items() if param.required]
    found = {"type": "object", "properties": params, "required": required, "additionalProperties": kind.open}
    if kind.one_of:
        found["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return found


def _actions() -> dict[str, Any]:
    forms = {name: _action(kind) for name, kind in KINDS.items()}
    forms |= {written: forms[name] for written, name in SYNONYMS.items()}
    one = {"type": "object", "properties": forms, "additionalProperties": False, "minProperties": 1, "maxProperties": 1}
    return {"type": "array", "items": one, "maxItems": ACTIONS_MAX}


MODEL: dict[str, Any] = {
    "type": "object",
    "description": "A decision model as a JDM file has it.",
    "properties": {
        "nodes": {"type": "array", "items": {"type": "object"}, "maxItems": MODEL_NODES_MAX},
        "edges": {"type": "array", "items": {"type": "object"}},
        "inputs": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MODEL_INPUTS_MAX},
        "match": {"type": "string"},
        **{name: {} for name in DROPPED},
    },
    "required": ["nodes", "edges"],
    "additionalProperties": False,
}

RULE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "version": {"type": "integer", "minimum": 1, "maximum": VERSION_MAX},
        "name": {"type": "string", "maxLength": RULE_NAME_LENGTH_MAX},
        "description": _DESCRIPTION,
        "priority": {"type": "integer", "minimum": -PRIORITY_MAX, "maximum": PRIORITY_MAX},
        "conditions": CONDITION,
        "model": MODEL,
        "actions": _actions(),
        "effective_from": _TIME,
        "effective_until": _TIME,
    },
    "oneOf": [{"required": ["conditions"]}, {"required": ["model"]}],
    "additionalProperties": False,
}

RULE_SET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "events": {
            "type": "array", "items": {"type": "string", "minLength": 1, "maxLength": EVENT_TYPE_LENGTH_MAX},
            "minItems": 1, "maxItems": SET_EVENTS_MAX,
        },
        "rules": {"type": "array", "items": _NAME, "minItems": 1, "maxItems": RULES_MAX},
        "policy": {"enum": ["all", "first"]},
        "record": {"enum": ["matched", "all"]},
        "historical": {"type": "boolean"},
        "description": _DESCRIPTION,
    },
    "required": ["events", "rules"],
    "additionalProperties": False,
}  # fmt: skip


def _by_name(what: str, one: dict[str, Any], most: int) -> dict[str, Any]:
    return {
        "type": "object",
        "description": what,
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "maxProperties": most,
        "additionalProperties": one,
    }


RULES_SECTION = Section(
    name="rules",
    schema=_by_name("Rules by id: what is asked of an event, and what is done.", RULE, RULES_MAX),
    defs=DEFS,
)
SETS_SECTION = Section(
    name="rule_sets",
    schema=_by_name("Sets of rules by name: which are asked of which events.", RULE_SET, RULE_SETS_MAX),
)
