"""To which segments a person must belong: conditions asked slowly of a picture, in the words of docs/conditions.md."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

Tree = dict[str, Any]
"""Conditions as they are written, in JSON."""


def segments(picture: Mapping[str, Any], declared: Mapping[str, Tree]) -> dict[str, bool]:
    """Segment -> whether somebody belongs, from what the auditor says of them and the section `segments`."""
    return {name: satisfied(segment["when"], picture) for name, segment in declared.items()}


def satisfied(tree: Tree, picture: Mapping[str, Any]) -> bool:
    """Whether a tree is true. Every part is asked, whether or not the answer stands already."""
    if "all" in tree:
        return False not in [satisfied(part, picture) for part in tree["all"]]
    if "any" in tree:
        return True in [satisfied(part, picture) for part in tree["any"]]
    if "not" in tree:
        return not satisfied(tree["not"], picture)
    (operator,) = set(tree) - {"field"}
    return outcome(operator, _value(tree["field"], picture), tree[operator])


def _value(field: str, picture: Mapping[str, Any]) -> Any:
    first, *rest = field.split(".")
    value = picture.get(first)
    for step in rest:
        value = value.get(step) if isinstance(value, dict) else None
    # Of a feature the auditor says its value and whether anything has fed it.
    return value[0] if isinstance(value, tuple) else value


def _number(value: Any) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and len(value) > 64:
        return None
    if isinstance(value, str) and not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", value):
        return None
    return Fraction(str(value)) if str(value) not in ("nan", "inf", "-inf") else None


def _moment(value: Any) -> dt.datetime | None:
    if not isinstance(value, str) or not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return None
    try:
        read = dt.datetime.fromisoformat(value)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=dt.UTC)


def _pair(value: Any, operand: Any) -> tuple[Any, Any] | None:
    """What the two sides are compared as; None if they do not go together."""
    if isinstance(value, bool) or isinstance(operand, bool):
        return (value, operand) if isinstance(value, bool) and isinstance(operand, bool) else None
    if isinstance(value, str) and isinstance(operand, str):
        times = _moment(value), _moment(operand)
        return times if None not in times else (value, operand)
    numbers = _number(value), _number(operand)
    return numbers if None not in numbers else None


def _equal(value: Any, operand: Any) -> bool:
    both = _pair(value, operand)
    return both is not None and bool(both[0] == both[1])


def _ordered(value: Any, operand: Any, signs: set[int]) -> bool:
    both = _pair(value, operand)
    if both is None or isinstance(both[0], bool):
        return False
    if _moment(operand) is not None and _moment(value) is None:
        return False
    return ((both[0] > both[1]) - (both[0] < both[1])) in signs


def _holds(value: Any, operand: Any) -> bool | None:
    if isinstance(value, list):
        return any(_equal(item, operand) for item in value)
    if isinstance(value, str | dict) and isinstance(operand, str):
        return operand in value
    return None


def outcome(operator: str, value: Any, operand: Any) -> bool:
    """Whether a value, None if it is missing, passes one operator."""
    if operator == "exists":
        return (value is not None) is operand
    if value is None:
        return False
    text = value if isinstance(value, str) else None
    tests: dict[str, Callable[[], Any]] = {
        "equals": lambda: _equal(value, operand),
        "not_equals": lambda: not _equal(value, operand),
        "greater_than": lambda: _ordered(value, operand, {1}),
        "greater_than_or_equal": lambda: _ordered(value, operand, {1, 0}),
        "less_than": lambda: _ordered(value, operand, {-1}),
        "less_than_or_equal": lambda: _ordered(value, operand, {-1, 0}),
        "contains": lambda: _holds(value, operand) is True,
        "not_contains": lambda: _holds(value, operand) is False,
        "starts_with": lambda: text is not None and text[: len(operand)] == operand,
        "ends_with": lambda: text is not None and (operand == "" or text[-len(operand) :] == operand),
        "in": lambda: any(_equal(value, item) for item in operand),
        "not_in": lambda: not any(_equal(value, item) for item in operand),
        "regex": lambda: text is not None and re.search(operand, text) is not None,
    }
    return bool(tests[operator]())
