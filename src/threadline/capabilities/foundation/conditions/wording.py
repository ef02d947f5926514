"""Conditions in words, for pages, pictures and messages: fields, comparisons and values as people write them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions.fields import EVENT, RELATIVE
from threadline.capabilities.foundation.conditions.operators import OPERATORS, decimal_of, instant_of
from threadline.capabilities.foundation.conditions.tree import All, Node, Not, Path, Test

TEXT_MAX = 80
"""Letters of a tree in words; the rest is cut."""
VALUES_MAX = 5
"""Of a list of values; the others are counted."""
_UNNAMED = ("traits", "features", "memory")
"""First steps that are left out: people know what is behind them by its own name."""
_PLAIN = re.compile(r"\w[\w .@/+-]*")


class Wording(NamedTuple):
    """A condition in words. What is empty is left out."""

    field: str
    comparison: str
    value: str

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def field_text(path: Path) -> str:
    """A field, such as ``monetary total`` or ``days since renewal``."""
    first, rest = path[0], path[1:]
    if first in RELATIVE and rest:
        return f"{_words(first)} {field_text(rest)}"
    if first == EVENT and len(rest) > 1:
        return f"{_words(*rest[1:])} of the event"
    if first == EVENT and rest:
        return f"{_words(*rest)} of the event"
    if path[:2] == ("journey", "variables") and path[2:]:
        return f"{_words(*path[2:])} of the journey"
    if first == "segments" and path[2:] == ("since",):
        return f"joining {_words(path[1])}"
    return _words(*rest) if first in _UNNAMED and rest else _words(*path)


def _words(*steps: str) -> str:
    return " ".join(steps).replace("_", " ")


def comparison_text(operator: str, operand: Any) -> str:
    """What is between a field and a value, such as ``is more than``."""
    known = OPERATORS.get(operator)
    if known is None:
        return operator.replace("_", " ")
    if known.operand == "flag":
        return known.text if operand else known.of_false
    is_time = isinstance(operand, str) and instant_of(operand) is not None
    return known.of_times if is_time and known.of_times else known.text


def value_text(operand: Any) -> str:
    """A value, or several of them as a choice."""
    if isinstance(operand, bool):
        return "yes" if operand else "no"
    if isinstance(operand, (list, tuple)):
        *others, last = [value_text(value) for value in operand] or [""]
        if len(others) >= VALUES_MAX:
            return f"{', '.join(others[:VALUES_MAX])} … ({len(operand) - VALUES_MAX:,} more)"
        return f"{', '.join(others)} or {last}" if others else last
    if isinstance(operand, str):
        is_text = instant_of(operand) is not None or (_PLAIN.fullmatch(operand) and decimal_of(operand) is None)
        return operand if is_text and operand == operand.strip() else f"“{operand}”"
    return str(operand)


def wording(path: Path, operator: str, operand: Any) -> Wording:
    """One condition. Whether somebody belongs to something reads as that and not as a field that is known."""
    if operator == "exists":
        negation = "" if operand else "not "
        if path[:2] == ("journeys", "sent") and path[2:]:
            return Wording("", f"was {negation}sent", _words(*path[2:]))
        if path[0] == "segments" and path[2:] in ((), ("since",)) and path[1:]:
            return Wording("", f"is {negation}in", _words(path[1]))
        return Wording(field_text(path), comparison_text(operator, operand), "")
    return Wording(field_text(path), comparison_text(operator, operand), value_text(operand))


def condition_text(node: Node, most: int = TEXT_MAX) -> str:
    """A tree, cut where it is long."""
    return _cut(_node_text(node), most)


def denied_text(node: Node, most: int = TEXT_MAX) -> str:
    """That a tree is not true, in short: ``plan is not club``, be there a plan or none."""
    if isinstance(node, Test) and (denial := _denial(node.operator)):
        return _cut(str(wording(node.path, denial, node.operand)), most)
    return _cut(_denied(node), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _denial(operator: str) -> str:
    """The operator that says the contrary of a value that is known; empty if there is none."""
    name = operator.removeprefix("not_") if operator.startswith("not_") else f"not_{operator}"
    return name if name in OPERATORS else ""


def _node_text(node: Node) -> str:
    if isinstance(node, Test):
        return str(wording(node.path, node.operator, node.operand))
    if isinstance(node, Not):
        return _denied(node.part)
    conjunction = " and " if isinstance(node, All) else " or "
    return conjunction.join(
        _node_text(part) if isinstance(part, Test | Not) else f"({_node_text(part)})" for part in node.parts
    )


def _denied(node: Node) -> str:
    if isinstance(node, Test) and node.operator == "exists":
        return str(wording(node.path, node.operator, not node.operand))
    return f"not ({_node_text(node)})"
