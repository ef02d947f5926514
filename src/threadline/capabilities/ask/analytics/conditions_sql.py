"""Conditions on events as SQL: the same answer as `capabilities/foundation/conditions` gives, event by event.

Numbers are compared as DOUBLE, so that two that differ beyond the fifteenth digit are equal here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from threadline.capabilities.foundation.conditions.fields import EVENT
from threadline.capabilities.foundation.conditions.operators import decimal_of, instant_of
from threadline.capabilities.foundation.conditions.reading import GROUPS, read_json
from threadline.capabilities.foundation.conditions.tree import All, AnyOf, Node, Not, Path, Test, tests_of
from threadline.capabilities.foundation.conditions.where import short_form
from threadline.kernel.analytics import literal
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.fixed import DECIMAL, DECIMAL_LENGTH_MAX
from threadline.kernel.time import to_datetime

PLAIN = ("type", "source", "source_type")
"""Fields of an event that are columns of their own."""
_NESTED = ("properties", "context")
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*"
_NUMBERS = "('BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT', 'DOUBLE')"
_COMPARING = {"greater_than": ">", "greater_than_or_equal": ">=", "less_than": "<", "less_than_or_equal": "<="}


class _Value:
    """A field of an event in SQL: its text, and its kind as `json_type` names it."""

    def __init__(self, text: str, kind: str, whole: str) -> None:
        self.text = text
        self.kind = kind
        self.whole = whole
        """The value as JSON."""

    @property
    def number(self) -> str:
        """The number that it is, or that its text says; NULL for any other value."""
        is_decimal = (
            f"{self.kind} = 'VARCHAR' AND length({self.text}) <= {DECIMAL_LENGTH_MAX} "
            f"AND regexp_full_match({self.text}, {literal(DECIMAL.pattern)})"
        )
        return f"CASE WHEN {self.kind} IN {_NUMBERS} OR ({is_decimal}) THEN TRY_CAST({self.text} AS DOUBLE) END"

    @property
    def plain_number(self) -> str:
        """The number that it is, if it is no text."""
        return f"CASE WHEN {self.kind} IN {_NUMBERS} THEN TRY_CAST({self.text} AS DOUBLE) END"

    @property
    def instant(self) -> str:
        """The instant that its text names; NULL for any other value."""
        is_instant = f"{self.kind} = 'VARCHAR' AND regexp_full_match({self.text}, '{_DAY}')"
        return f"CASE WHEN {is_instant} THEN TRY_CAST({self.text} AS TIMESTAMPTZ) END"


def read_conditions(text: str, param: str = "where") -> Node | None:
    """The tree of conditions on an event, as JSON in the short form or as a tree; None for an empty text.

    Raises `InvalidValue`, which names the parameter, for what cannot be asked of the columns of events.
    """
    if not text.strip():
        return None
    try:
        return conditions_of(msgspec.json.decode(text), param)
    except msgspec.MsgspecError as error:
        raise InvalidValue(f"{param}: this is not JSON: {error}", param=param) from None


def conditions_of(value: Any, param: str) -> Node:
    """The same of plain values."""
    if not isinstance(value, dict) or not value:
        raise InvalidValue(f'{param}: expected an object such as {{"total": {{"gt": 50}}}}', param=param)
    is_tree = "field" in value or any(len(value) == 1 and key in GROUPS for key in value)
    plain = value if is_tree else {"all": [tree for _, tree in short_form(value)]}
    try:
        tree = read_json(plain, param)
    except InvalidDefinition as error:
        raise InvalidValue(str(error), param=param) from None
    for test in tests_of(tree):
        if test.path[0] != EVENT or test.path[1] not in (*PLAIN, *_NESTED):
            fields = f"event.properties.…, event.context.…, {', '.join(f'event.{name}' for name in PLAIN)}"
            raise InvalidValue(f"{param}: cannot read {test.field} here; name one of {fields}", param=param)
    return tree


def condition_sql(node: Node) -> str:
    """Whether an event of the view `events` passes, in SQL; never NULL."""
    match node:
        case Test():
            return _test(node)
        case Not(part):
            return f"NOT {condition_sql(part)}"
        case All(parts):
            return f"({' AND '.join(map(condition_sql, parts))})" if parts else "true"
        case AnyOf(parts):
            return f"({' OR '.join(map(condition_sql, parts))})" if parts else "false"
    raise TypeError(node)


def text_sql(path: Path) -> str:
    """The text of a field of an event in SQL; NULL without one."""
    return _field(path).text


def kind_sql(path: Path) -> str:
    """The kind of a field of an event in SQL, as `json_type` names it; NULL where there is none."""
    return _field(path).kind


def pointer(steps: Path) -> str:
    """A JSON pointer."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def _field(path: Path) -> _Value:
    _, first, *steps = path
    if first in PLAIN:
        return _Value(first, "'VARCHAR'", f"to_json({first})")
    at = literal(pointer(tuple(steps)))
    return _Value(f"json_extract_string({first}, {at})", f"json_type({first}, {at})", f"json_extract({first}, {at})")


def _test(test: Test) -> str:
    value, operand = _field(test.path), test.operand
    operator, is_negated = test.operator, False
    if operator.startswith("not_"):
        operator, is_negated = {"not_equals": "equals"}.get(operator, operator.removeprefix("not_")), True
    if operator == "exists":
        return f"({value.text} IS {'NOT ' if operand else ''}NULL)"
    asked = f"coalesce({_OPERATORS[operator](value, operand)}, false)"
    if not is_negated:
        return asked
    kinds = ""
    if operator == "contains":
        # It has a meaning for lists, and for texts where a text is sought; any other value passes neither test.
        meant = "('ARRAY', 'VARCHAR', 'OBJECT')" if type(operand) is str else "('ARRAY')"
        kinds = f" AND {value.kind} IN {meant}"
    return f"({value.text} IS NOT NULL{kinds} AND NOT {asked})"


def _equals(value: _Value, operand: Any) -> str:
    if type(operand) is bool:
        return f"({value.kind} = 'BOOLEAN' AND {value.text} = '{str(operand).lower()}')"
    if type(operand) is not str:
        return f"({value.number} = {_number(operand)})"
    tests = [f"({value.kind} = 'VARCHAR' AND {value.text} = {literal(operand)})"]
    if (at := instant_of(operand)) is not None:
        tests.append(f"({value.instant} = {literal(to_datetime(at))})")
    if decimal_of(operand) is not None:
        tests.append(f"({value.plain_number} = {_number(operand)})")
    return _any(tests)


def _ordered(sign: str) -> Callable[[_Value, Any], str]:
    def compare(value: _Value, operand: Any) -> str:
        if type(operand) is not str:
            return f"{value.number} {sign} {_number(operand)}"
        at = instant_of(operand)
        texts = f"{value.kind} = 'VARCHAR' AND {value.text} {sign} {literal(operand)}"
        tests = [f"({texts})" if at is None else f"({value.instant} {sign} {literal(to_datetime(at))})"]
        if decimal_of(operand) is not None:
            tests.append(f"({value.plain_number} {sign} {_number(operand)})")
        return _any(tests)

    return compare


def _contains(value: _Value, operand: Any) -> str:
    entry = _Value("json_extract_string(entry, '$')", "json_type(entry)", "entry")
    entries = f"CASE WHEN {value.kind} = 'ARRAY' THEN {value.whole}::JSON[] END"
    tests = [f"list_bool_or(list_transform({entries}, lambda entry: coalesce({_equals(entry, operand)}, false)))"]
    if type(operand) is str:
        tests.append(f"({value.kind} = 'VARCHAR' AND contains({value.text}, {literal(operand)}))")
        names = f"json_keys(CASE WHEN {value.kind} = 'OBJECT' THEN {value.whole} END)"
        tests.append(f"list_contains({names}, {literal(operand)})")
    return _any([f"coalesce({test}, false)" for test in tests])


def _on_text(function: str) -> Callable[[_Value, Any], str]:
    return lambda value, operand: f"({value.kind} = 'VARCHAR' AND {function}({value.text}, {literal(operand)}))"


def _any(tests: list[str]) -> str:
    # Each may be NULL, which says nothing of the others.
    return tests[0] if len(tests) == 1 else f"({' OR '.join(f'coalesce({test}, false)' for test in tests)})"


def _number(operand: Any) -> str:
    return f"{decimal_of(operand)}::DOUBLE"


_OPERATORS: dict[str, Callable[[_Value, Any], str]] = {
    "equals": _equals,
    "in": lambda value, operand: _any([_equals(value, item) for item in operand]),
    "contains": _contains,
    "starts_with": _on_text("starts_with"),
    "ends_with": _on_text("ends_with"),
    "regex": _on_text("regexp_matches"),
    **{name: _ordered(sign) for name, sign in _COMPARING.items()},
}
