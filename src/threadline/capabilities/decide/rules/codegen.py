"""Many trees asked in one function that is written out: several times as fast as asking one after the other.

The source text is made of names and numbers of our own; whatever users declare reaches it as objects in the
namespace only, so that nothing in a definition can become code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

from threadline.capabilities.foundation.conditions import All, Node, Not, Path, Subject, Test
from threadline.capabilities.foundation.conditions.fields import EVENT, reader
from threadline.capabilities.foundation.conditions.operators import EXACT_INTEGER_MAX, check_of, is_plain_text

Matching = Callable[[Subject], Iterator[int]]
"""The positions of the trees that match, in order, each as soon as it is known."""

TREES_MAX = 200
"""Trees of one function: a larger one takes longer to compile and is no faster."""

_SIGNS = {
    "equals": "==",
    "not_equals": "!=",
    "greater_than": ">",
    "greater_than_or_equal": ">=",
    "less_than": "<",
    "less_than_or_equal": "<=",
}


def fused(trees: Sequence[tuple[int, Node]]) -> Matching:
    """One function for all of these trees, each with its position."""
    parts = [_Part(trees[start : start + TREES_MAX]) for start in range(0, len(trees), TREES_MAX)]
    if len(parts) == 1:
        return parts[0].matching

    def matching(subject: Subject) -> Iterator[int]:
        for part in parts:
            yield from part.matching(subject)

    return matching


class _Part:
    """A function that is written when it is first asked."""

    def __init__(self, trees: Sequence[tuple[int, Node]]) -> None:
        self._trees = trees
        self._written: Matching | None = None

    def matching(self, subject: Subject) -> Iterator[int]:
        if self._written is None:
            self._written = _Writer().written(self._trees)
        return self._written(subject)


class _Writer:
    """Collects the lines and the namespace of one function; reads every field once, however many tests want it."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"U": object(), "int": int, "float": float}
        self._fields: dict[Path, int] = {}
        self._numeric: set[int] = set()

    def written(self, trees: Sequence[tuple[int, Node]]) -> Matching:
        """The function."""
        body = [f"    if {self._expression(tree)}: yield {position}" for position, tree in trees]
        lines = ["def matching(s):", "    r = s.recorded", "    p = r.event.properties if r is not None else {}"]
        for path, number in self._fields.items():
            lines.append(f"    v{number} = {self._first(path, number)}")
        for number in sorted(self._numeric):
            kind = f"v{number}.__class__"
            whole = f"{kind} is int and {-EXACT_INTEGER_MAX} <= v{number} <= {EXACT_INTEGER_MAX}"
            lines.append(f"    k{number} = ({whole}) or ({kind} is float and -I < v{number} < I)")
        self._names["I"] = inf
        # The text holds only what this module wrote, see above.
        exec(compile("\n".join([*lines, *body]), "<fused rules>", "exec"), self._names)  # noqa: S102
        matching: Matching = self._names["matching"]
        return matching

    def _name(self, value: Any) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def _first(self, path: Path, number: int) -> str:
        """A field of the event is read at once; a field of a view when it is needed, because that takes longer."""
        if path[0] != EVENT:
            return "U"
        if path[1] == "properties" and len(path) == 3:
            return f"p.get({self._name(path[2])})"
        return f"R{number}(s)"

    def _field(self, path: Path) -> tuple[int, str]:
        number = self._fields.get(path)
        if number is None:
            number = self._fields[path] = len(self._fields)
            self._names[f"R{number}"] = reader(path)
        if path[0] == EVENT:
            return number, f"v{number}"
        return number, f"(v{number} if v{number} is not U else (v{number} := R{number}(s)))"

    def _expression(self, node: Node) -> str:
        if isinstance(node, Test):
            return self._test(node)
        if isinstance(node, Not):
            return f"(not {self._expression(node.part)})"
        return "(" + (" and " if isinstance(node, All) else " or ").join(map(self._expression, node.parts)) + ")"

    def _test(self, test: Test) -> str:
        number, value = self._field(test.path)
        operand = test.operand
        if test.operator == "exists":
            return f"({value} is not None)" if operand else f"({value} is None)"
        if test.operator == "equals" and type(operand) is bool:
            return f"({value} is {operand})"
        if test.operator == "equals" and is_plain_text(operand):
            return f"({value} == {self._name(operand)})"
        check = self._name(check_of(test.operator, operand))
        slow = f"((t := {value}) is not None and {check}(t) is True)"
        if test.path[0] == EVENT and test.operator in _SIGNS and _is_near(operand):
            self._numeric.add(number)
            return f"({value} {_SIGNS[test.operator]} {self._name(operand)} if k{number} else {slow})"
        return slow


def _is_near(operand: Any) -> bool:
    """Whether every value that is marked as a number may be compared with this as it is."""
    return type(operand) is float or (type(operand) is int and abs(operand) <= EXACT_INTEGER_MAX)
