"""From plain values to rules and sets of rules: every mistake is named where it stands, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from threadline.capabilities.conditions.reading import read_plain
from threadline.capabilities.definitions import PROBLEMS_MAX, shown_place
from threadline.capabilities.rules.actions import Action, read_action
from threadline.capabilities.rules.body import Body, ConditionsBody
from threadline.capabilities.rules.definition import NAME, VERSION_MAX, Rule, RuleSet
from threadline.capabilities.rules.model_reading import read_model
from threadline.capabilities.rules.templates import Fail
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import (
    ACTIONS_MAX,
    EVENT_TYPE_LENGTH_MAX,
    RULE_BYTES_MAX,
    RULE_DESCRIPTION_LENGTH_MAX,
    RULE_NAME_LENGTH_MAX,
    RULES_MAX,
)
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import parse_time

PRIORITY_MAX = 1_000_000
SET_EVENTS_MAX = 200


def _conditions(value: Any, fail: Fail) -> Body | None:
    tree = read_plain(value, fail)
    return None if tree is None else ConditionsBody(tree)


BODIES: dict[str, Callable[[Any, Fail], Body | None]] = {"conditions": _conditions, "model": read_model}
"""The key of a body in a rule -> what reads it; what is wrong with it is told with its place inside the body."""

RULE_KEYS = ("version", "name", "description", "priority", *BODIES, "actions", "effective_from", "effective_until")
SET_KEYS = ("events", "rules", "policy", "record", "historical", "description")


def rule_of_json(id: str, value: Any, place: str = "rule") -> Rule:
    """The rule of plain values, as JSON gives them.

    Raises `InvalidDefinition` with every mistake, one a line, each with its place, such as ``rule.actions[0].tag``.
    """
    rule: Rule = _refusing(place, lambda fail: read_rule(id, value, fail))
    return rule


def set_of_json(name: str, value: Any, place: str = "rule_set") -> RuleSet:
    """The same for a set of rules."""
    rule_set: RuleSet = _refusing(place, lambda fail: read_set(name, value, fail))
    return rule_set


def _refusing(place: str, read: Callable[[Fail], Any]) -> Any:
    problems: list[str] = []
    found = read(lambda at, text: problems.append(f"{place}{shown_place(at)}: {text}"))
    if found is None or problems:
        raise InvalidDefinition("\n".join(problems[:PROBLEMS_MAX]))
    return found


class _Fields:
    """The plain fields of one mapping, each checked when it is asked for."""

    def __init__(self, value: dict[str, Any], fail: Fail) -> None:
        self._value = value
        self._fail = fail

    def text(self, name: str, most: int) -> str:
        value = self._value.get(name, "")
        if type(value) is not str or len(value) > most:
            self._fail((name,), f"`{name}` is a text of at most {most:,} characters")
            return ""
        return value

    def whole(self, name: str, least: int, most: int, default: int) -> int:
        value = self._value.get(name, default)
        if type(value) is not int or not least <= value <= most:
            self._fail((name,), f"`{name}` is a whole number from {least:,} to {most:,}")
            return default
        return value

    def instant(self, name: str) -> int | None:
        value = self._value.get(name)
        if value is None:
            return None
        try:
            return parse_time(value) if type(value) is str else _raise(InvalidValue("write it in quotes"))
        except InvalidValue as error:
            self._fail((name,), f"`{name}` is a time, such as 2026-03-01T12:00:00Z: {error}")
            return None

    def choice(self, name: str, allowed: Collection[str], default: str) -> Any:
        value = self._value.get(name, default)
        if value not in allowed:
            self._fail((name,), f"`{name}` is one of {', '.join(allowed)}")
            return default
        return value

    def flag(self, name: str) -> bool:
        value = self._value.get(name, False)
        if type(value) is not bool:
            self._fail((name,), f"`{name}` is true or false")
        return value is True

    def texts(self, name: str, most: int, check: Callable[[str], str]) -> tuple[str, ...]:
        value = self._value.get(name)
        if type(value) is not list or not 0 < len(value) <= most:
            self._fail((name,) if name in self._value else (), f"`{name}` is a list of 1 to {most:,} names")
            return ()
        taken: set[str] = set()
        for index, each in enumerate(value):
            problem = check(each) if type(each) is str else "is a text; write it in quotes"
            if problem or each in taken:
                self._fail((name, index), f"{each!r} {problem or 'is listed twice; keep one'}")
            elif type(each) is str:
                taken.add(each)
        return tuple(each for each in value if type(each) is str)


def _raise(error: Exception) -> int:
    raise error


def read_rule(id: str, value: Any, fail: Fail) -> Rule | None:
    """The rule of plain values; None if it cannot even be looked at. Every mistake is told to ``fail``."""
    if not NAME.fullmatch(id):
        fail((), f"{id[:80]!r} is not a valid rule id; use lower-case letters, digits, - and _, such as risk-score")
        return None
    if not _is_mapping(value, RULE_KEYS, "rule", fail):
        return None
    fields = _Fields(value, fail)
    since, until = fields.instant("effective_from"), fields.instant("effective_until")
    if since is not None and until is not None and since >= until:
        fail(("effective_until",), "`effective_until` is not after `effective_from`")
    version = fields.whole("version", 1, VERSION_MAX, 1)
    name = fields.text("name", RULE_NAME_LENGTH_MAX)
    description = fields.text("description", RULE_DESCRIPTION_LENGTH_MAX)
    priority = fields.whole("priority", -PRIORITY_MAX, PRIORITY_MAX, 0)
    body, actions = _body(value, fail), _actions(value.get("actions", []), fail)
    if body is None or actions is None:
        return None
    rule = Rule(id, version, body, name, description, priority, actions, since, until)
    try:
        size = len(rule.canonical)
    except InvalidValue as error:
        fail((), str(error))
        return None
    if size > RULE_BYTES_MAX:
        fail((), f"the rule has {size:,} bytes; at most {RULE_BYTES_MAX:,} are allowed, split it in two")
    return rule


def _is_mapping(value: Any, keys: Collection[str], what: str, fail: Fail) -> bool:
    if type(value) is not dict:
        fail((), f"a {what} is a mapping, `key: value`")
        return False
    for name in value:
        if name not in keys:
            fail((name,), f"a {what}: unknown key {name!r}; {suggestion(name, keys)}")
    return True


def _body(value: dict[str, Any], fail: Fail) -> Body | None:
    given = [name for name in BODIES if name in value]
    if len(given) != 1:
        fail((), f"a rule has one of {', '.join(f'`{name}`' for name in BODIES)}: what is asked of the event")
        return None
    (kind,) = given
    return BODIES[kind](value[kind], lambda at, text: fail((kind, *at), text))


def _actions(value: Any, fail: Fail) -> tuple[Action, ...] | None:
    if type(value) is not list or len(value) > ACTIONS_MAX:
        fail(("actions",), f"`actions` is a list of at most {ACTIONS_MAX}")
        return None
    found = [read_action(each, ("actions", index), fail) for index, each in enumerate(value)]
    actions = tuple(action for action in found if action is not None)
    stored = [index for index, action in enumerate(found) if action is not None and action.kind.wish is None]
    if len(stored) > 1:
        fail(("actions", stored[1]), "a rule stores one decision; put further parameters into the first")
    return actions if len(actions) == len(found) else None


def read_set(name: str, value: Any, fail: Fail) -> RuleSet | None:
    """The set of plain values; None if it cannot even be looked at. Every mistake is told to ``fail``."""
    if not NAME.fullmatch(name):
        fail((), f"{name[:80]!r} is not a valid rule set name; use lower-case letters, digits, - and _, like checkout")
        return None
    if not _is_mapping(value, SET_KEYS, "rule set", fail):
        return None
    fields = _Fields(value, fail)
    return RuleSet(
        name,
        events=fields.texts("events", SET_EVENTS_MAX, _wrong_type),
        rules=fields.texts("rules", RULES_MAX, _wrong_id),
        policy=fields.choice("policy", ("all", "first"), "all"),
        record=fields.choice("record", ("matched", "all"), "matched"),
        historical=fields.flag("historical"),
        description=fields.text("description", RULE_DESCRIPTION_LENGTH_MAX),
    )


def _wrong_type(type: str) -> str:
    if type.startswith(SYSTEM_PREFIX):
        return "is Threadline's own, and no rule is asked of it"
    return "" if 0 < len(type) <= EVENT_TYPE_LENGTH_MAX else f"has not 1 to {EVENT_TYPE_LENGTH_MAX} characters"


def _wrong_id(id: str) -> str:
    return "" if NAME.fullmatch(id) else "is not a valid rule id"
