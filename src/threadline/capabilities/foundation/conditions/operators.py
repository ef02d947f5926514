"""The operators: what each makes of a value, by type; docs/worked/conditions.md has the whole matrix."""

from __future__ import annotations

import operator as compare_by
import re
from collections.abc import Callable
from decimal import Decimal
from math import inf
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions.regex import compile_regex
from threadline.kernel.errors import InvalidValue
from threadline.kernel.fixed import DECIMAL, DECIMAL_LENGTH_MAX
from threadline.kernel.time import parse_time

Check = Callable[[Any], bool | None]
"""Whether a value, which is never None, passes; None if the operator has no meaning for a value of its type."""

Compare = Callable[[Any, Any], bool]

_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_LIKE_A_DATE = re.compile(
    rf"\s*(?:\d{{4}}[./-](?:\d\d?|{_MONTH})[./-]\d\d?|\d\d?[./-](?:\d\d?|{_MONTH})[./-]\d{{4}}|"
    rf"\d\d?[/-](?:\d\d?|{_MONTH})[/-]\d\d|\d\d?\.? {_MONTH}\.?,? \d{{4}}|{_MONTH}\.? \d\d?,? \d{{4}})(?!\d)",
    re.IGNORECASE | re.ASCII,
)
"""As spreadsheets, mails and people write dates; a version such as 1.2.3 is none."""

EXACT_INTEGER_MAX = 1 << 53
"""Up to here an integer and a float compare as their decimals do."""


def decimal_of(value: Any) -> Decimal | None:
    """The exact amount of a number or a decimal text; None for anything else.

    A float is the shortest decimal that names it, so that 0.1 is one tenth. NaN and the infinities are no numbers.
    """
    kind = type(value)
    if kind is int:
        return Decimal(value)
    if kind is float:
        return Decimal(repr(value)) if -inf < value < inf else None
    if kind is str and len(value) <= DECIMAL_LENGTH_MAX and DECIMAL.fullmatch(value):
        return Decimal(value)
    return value if isinstance(value, Decimal) else None


def instant_of(text: str) -> int | None:
    """The instant that a text names, as ``2026-03-01`` or with a time of day; None for any other text."""
    if len(text) < 10 or text[4] != "-" or text[7] != "-":
        return None
    try:
        return parse_time(text)
    except InvalidValue:
        return None


def is_like_a_date(text: str) -> bool:
    """Whether a person reads a date in it and `instant_of` does not, such as ``06-Sep-2024``."""
    return len(text) <= DECIMAL_LENGTH_MAX and instant_of(text) is None and _LIKE_A_DATE.match(text) is not None


def is_plain_text(operand: Any) -> bool:
    """Whether this is a text that equals nothing but itself: neither a number nor an instant."""
    return type(operand) is str and decimal_of(operand) is None and instant_of(operand) is None


# --- equality -------------------------------------------------------------------------------


def _equals(operand: Any) -> Check:
    if type(operand) is bool:
        return lambda value: value is operand if type(value) is bool else None
    return _equals_text(operand) if type(operand) is str else _by_number(compare_by.eq, operand)


def _equals_text(operand: str) -> Check:
    instant, number = instant_of(operand), decimal_of(operand)

    def check(value: Any) -> bool | None:
        if type(value) is str:
            return value == operand or (instant is not None and instant_of(value) == instant)
        return _against(compare_by.eq, value, number)

    return check


def _against(compare: Compare, value: Any, number: Decimal | None) -> bool | None:
    """A number compared with what a text says; None if one of them is no number."""
    other = None if number is None or type(value) is str else decimal_of(value)
    return None if other is None else compare(other, number)


def _not_equals(operand: Any) -> Check:
    equals = _equals(operand)
    return lambda value: not equals(value)


def _within(operand: tuple[Any, ...]) -> Check:
    """Equal to one of these: what `_equals` says of each, by looking up instead of going through them."""
    texts = frozenset(item for item in operand if type(item) is str)
    flags = frozenset(item for item in operand if type(item) is bool)
    instants = frozenset(at for text in texts if (at := instant_of(text)) is not None)
    numbers = frozenset(decimal_of(item) for item in operand if type(item) in (int, float))
    all_numbers = numbers | {number for text in texts if (number := decimal_of(text)) is not None}

    def check(value: Any) -> bool | None:
        kind = type(value)
        if kind is str:
            if value in texts or (instants and instant_of(value) in instants):
                return True
            number = decimal_of(value) if numbers else None
            return number in numbers if number is not None else False if texts else None
        if kind is bool:
            return value in flags if flags else None
        number = decimal_of(value)
        return None if number is None or not all_numbers else number in all_numbers

    return check


def _not_within(operand: tuple[Any, ...]) -> Check:
    within = _within(operand)
    return lambda value: not within(value)


# --- order ----------------------------------------------------------------------------------


def _ordered(compare: Compare) -> Callable[[Any], Check]:
    def make(operand: Any) -> Check:
        return _text_order(compare, operand) if type(operand) is str else _by_number(compare, operand)

    return make


def _by_number(compare: Compare, operand: int | float | Decimal) -> Check:
    exact = decimal_of(operand)
    whole = type(operand) is int
    near = type(operand) is float or (whole and -EXACT_INTEGER_MAX <= operand <= EXACT_INTEGER_MAX)

    def check(value: Any) -> bool | None:
        kind = type(value)
        if kind is int:
            if whole or -EXACT_INTEGER_MAX <= value <= EXACT_INTEGER_MAX:
                return compare(value, operand)
        elif kind is float and near and -inf < value < inf:
            return compare(value, operand)
        number = decimal_of(value)
        return None if number is None else compare(number, exact)

    return check


def _text_order(compare: Compare, operand: str) -> Check:
    instant, number = instant_of(operand), decimal_of(operand)

    def check(value: Any) -> bool | None:
        if type(value) is not str:
            return _against(compare, value, number)
        if instant is None:
            return compare(value, operand)
        at = instant_of(value)
        return None if at is None else compare(at, instant)

    return check


# --- texts and collections --------------------------------------------------------------------


def _contains(operand: Any) -> Check:
    equals = _equals(operand)
    text = operand if type(operand) is str else None

    def check(value: Any) -> bool | None:
        kind = type(value)
        if kind is list:
            return any(item is not None and equals(item) for item in value)
        if text is None:
            return None
        return text in value if kind is str or kind is dict else None

    return check


def _not_contains(operand: Any) -> Check:
    contains = _contains(operand)

    def check(value: Any) -> bool | None:
        result = contains(value)
        return None if result is None else not result

    return check


def _on_text(test: Callable[[str], bool]) -> Check:
    return lambda value: test(value) if type(value) is str else None


def _starts_with(operand: str) -> Check:
    return _on_text(lambda value: value.startswith(operand))


def _ends_with(operand: str) -> Check:
    return _on_text(lambda value: value.endswith(operand))


def _regex(operand: str) -> Check:
    return _on_text(compile_regex(operand))


def _exists(operand: bool) -> Check:
    # Checks get values that are not None; see `compiling.Leaf` for those that are.
    return lambda value: operand


FIELD_TYPES = ("number", "text", "time", "flag", "list")
"""Types of fields that a comparison is offered for."""
_SCALARS, _ORDERED, _TEXTS = ("number", "text", "time", "flag"), ("number", "time"), ("text",)


class Operator(NamedTuple):
    """How a value is compared, and how that reads."""

    operand: str
    """The kind of operand: ``scalar``, ``orderable``, ``text``, ``list`` or ``flag``."""
    make: Callable[[Any], Check]
    """The check of an operand."""
    text: str
    """In words, after the name of a field."""
    types: tuple[str, ...]
    """The types of fields for which a form offers it."""
    of_times: str = ""
    """In words where times are compared, if these are others."""
    of_false: str = ""
    """In words where the operand is the flag false."""


OPERATORS: dict[str, Operator] = {
    "equals": Operator("scalar", _equals, "is", _SCALARS),
    "not_equals": Operator("scalar", _not_equals, "is not", _SCALARS),
    "greater_than": Operator("orderable", _ordered(compare_by.gt), "is more than", _ORDERED, "is after"),
    "greater_than_or_equal": Operator("orderable", _ordered(compare_by.ge), "is at least", _ORDERED, "is not before"),
    "less_than": Operator("orderable", _ordered(compare_by.lt), "is less than", _ORDERED, "is before"),
    "less_than_or_equal": Operator("orderable", _ordered(compare_by.le), "is at most", _ORDERED, "is not after"),
    "contains": Operator("scalar", _contains, "contains", ("text", "list")),
    "not_contains": Operator("scalar", _not_contains, "does not contain", ("text", "list")),
    "starts_with": Operator("text", _starts_with, "starts with", _TEXTS),
    "ends_with": Operator("text", _ends_with, "ends with", _TEXTS),
    "in": Operator("list", _within, "is one of", _SCALARS[:3]),
    "not_in": Operator("list", _not_within, "is none of", _SCALARS[:3]),
    "regex": Operator("text", _regex, "matches the pattern", _TEXTS),
    "exists": Operator("flag", _exists, "is known", FIELD_TYPES, of_false="is missing"),
}
"""By name."""

ALIASES = {
    "eq": "equals",
    "ne": "not_equals",
    "gt": "greater_than",
    "gte": "greater_than_or_equal",
    "lt": "less_than",
    "lte": "less_than_or_equal",
}
"""Short spellings. A tree and all that is stored of it have the full name."""

WRITTEN = ALIASES | {"".join(part.capitalize() for part in name.split("_")): name for name in OPERATORS}
"""Other ways to write an operator: its short name, and ``GreaterThan`` as document databases keep rules."""
COMPARING = frozenset({*OPERATORS, *ALIASES} - {"exists"})
"""Spellings of the operators that take a value to compare with."""

ORDERING = frozenset(name for name in COMPARING if OPERATORS[ALIASES.get(name, name)].operand == "orderable")
"""Spellings of those that ask which of two values comes first."""

MEANING = 1
"""Grows when an operator answers differently for some value, so that states that depend on conditions are refolded."""


def check_of(operator: str, operand: Any) -> Check:
    """The check of an operator with its operand. Raises `InvalidValue` for a regular expression that is none."""
    return OPERATORS[operator].make(operand)
