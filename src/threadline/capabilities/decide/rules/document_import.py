"""From a rule as a document database keeps it, with `RuleId`, `Conditions` and `Actions`, to a rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from threadline.capabilities.decide.rules.actions import KINDS, SYNONYMS
from threadline.capabilities.decide.rules.definition import Rule, rule_of_json
from threadline.capabilities.foundation.conditions.fields import EVENT, PROFILE_PARTS
from threadline.capabilities.foundation.conditions.operators import OPERATORS
from threadline.capabilities.foundation.conditions.reading import GROUPS
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.suggestion import suggestion

KEYS = (
    "rule_id",
    "version",
    "name",
    "description",
    "is_active",
    "priority",
    "conditions",
    "actions",
    "effective_from",
    "effective_until",
)
DROPPED = ("_id", "created_at", "created_by", "updated_at", "updated_by")
"""Keys that say nothing of what the rule decides."""
ROOTS = frozenset(
    {EVENT, *PROFILE_PARTS, "activity", "alerts", "attribution", "broadcasts", "campaigns", "consent", "decisions",
     "features", "feedback", "identifiers", "interests", "journeys", "leaderboards", "mail", "mail_fetches", "memory",
     "points", "privacy", "segments", "streaks", "suppression"}
)  # fmt: skip
"""First steps of fields that are Threadline's. Every other field is a property of the event."""


class Document(NamedTuple):
    """A version of a rule as a document has it."""

    rule: Rule
    is_active: bool


def rule_of_document(label: str, value: Mapping[str, Any]) -> Document:
    """The rule of a document. Raises `InvalidDefinition` that names the place."""
    given = {snake(name): item for name, item in value.items() if snake(name) not in DROPPED}
    for name in given:
        if name not in KEYS:
            raise InvalidDefinition(f"{label}: unknown key {name!r} of a rule; {suggestion(name, KEYS)}")
    id, active = given.pop("rule_id", ""), given.pop("is_active", True)
    if type(id) is not str or type(active) is not bool:
        raise InvalidDefinition(f"{label}: a rule has a `RuleId`, a text, and `IsActive`, true or false")
    given["conditions"] = _conditions(given.get("conditions"), f"{label}: Conditions")
    given["actions"] = _actions(given.get("actions") or [], f"{label}: Actions")
    for name in ("effective_from", "effective_until"):
        given[name] = _time(given.get(name))
    content = {name: item for name, item in given.items() if item is not None}
    return Document(rule_of_json(rule_id(id), content, label), active)


def content_of(id: str, value: dict[str, Any], label: str) -> dict[str, Any]:
    """The content of a rule that somebody writes as a document; any other is returned as it is.

    Raises `InvalidDefinition` that names the place.
    """
    conditions = value.get("conditions")
    if "Conditions" not in value and not isinstance(conditions, list):
        return value
    rule = rule_of_document(label, {"Version": 1, **value, "RuleId": id}).rule
    return {name: item for name, item in rule.content.items() if name not in ("id", "version")}


def rule_id(name: str) -> str:
    """A name as the id of a rule."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:64] or "rule"


def snake(name: str) -> str:
    """A name such as ``RuleId`` as ``rule_id``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _objects(value: Any, label: str) -> list[dict[str, Any]]:
    if type(value) is not list or not all(type(item) is dict for item in value):
        raise InvalidDefinition(f"{label} is a list of objects")
    return [{snake(name): item for name, item in entry.items()} for entry in value]


def _conditions(value: Any, label: str) -> dict[str, Any]:
    """A list of conditions, all of which must hold, or a group; groups may stand in each other."""
    if type(value) is not dict:
        return {"all": [_condition(item, label) for item in _objects(value, label)]}
    return _condition({snake(name): item for name, item in value.items()}, label)


def _condition(value: dict[str, Any], label: str) -> dict[str, Any]:
    group = next(iter(value), "") if len(value) == 1 else ""
    if group == "not":
        return {"not": _conditions(value["not"], label)}
    if group in GROUPS:
        return {group: [_condition(item, label) for item in _objects(value[group], label)]}
    if not {"field", "operator"} <= value.keys() <= {"field", "operator", "value"} or type(value["field"]) is not str:
        raise InvalidDefinition(
            f"{label}: a condition has `Field`, `Operator` and `Value`, or one of `All`, `Any`, `Not`"
        )
    operator = snake(str(value["operator"]))
    if operator not in OPERATORS:
        raise InvalidDefinition(f"{label}: unknown operator {value['operator']!r}; {suggestion(operator, OPERATORS)}")
    return {"field": _field(value["field"]), operator: value.get("value", True if operator == "exists" else None)}


def _field(written: str) -> str:
    first, dot, rest = written.partition(".")
    if first.lower() == "payload" and dot:
        return f"event.properties.{rest}"
    return written if first in ROOTS and (dot or first in PROFILE_PARTS) else f"event.properties.{written}"


def _actions(value: Any, label: str) -> list[dict[str, Any]]:
    """The actions by their `Order`; those without one come after, as they stand."""
    objects = _objects(value, label)
    if any(type(item.get("order", 0)) is not int for item in objects):
        raise InvalidDefinition(f"{label}: `Order` is a whole number")
    return [_action(item, label) for item in sorted(objects, key=lambda item: item.get("order", len(objects)))]


def _action(value: dict[str, Any], label: str) -> dict[str, Any]:
    written, params = value.get("type"), value.get("parameters") or {}
    if type(written) is not str or type(params) is not dict or not value.keys() <= {"type", "order", "parameters"}:
        raise InvalidDefinition(f"{label}: an action has `Type`, `Order` and `Parameters`")
    kind = KINDS.get(SYNONYMS.get(written, written))
    known = kind.params if kind is not None else {}
    return {written: {snake(name) if snake(name) in known else name: item for name, item in params.items()}}


def _time(value: Any) -> Any:
    # Exports of MongoDB write an instant as {"$date": "2026-03-01T00:00:00Z"}.
    return value.get("$date") if type(value) is dict else value
