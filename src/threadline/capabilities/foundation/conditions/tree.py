"""A tree of conditions as a value, and the plain form in which it is written and stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]
"""The steps to a field, e.g. ("features", "monetary_total")."""


@dataclass(frozen=True, slots=True)
class Test:
    """One condition: a field, an operator, and the value to compare with (a tuple of them for `in` and `not_in`)."""

    path: Path
    operator: str
    operand: Any

    @property
    def field(self) -> str | list[str]:
        """The path as it is written: a text with dots, or a list of steps if one of them holds a dot itself."""
        return list(self.path) if any("." in step for step in self.path) else ".".join(self.path)


@dataclass(frozen=True, slots=True)
class All:
    """Matches if every part does."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Matches if at least one part does."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Matches if its part does not."""

    part: Node


Node = Test | All | AnyOf | Not


def parts_of(node: Node) -> tuple[Node, ...]:
    """What stands directly under a node."""
    if isinstance(node, Test):
        return ()
    return (node.part,) if isinstance(node, Not) else node.parts


def tests_of(node: Node) -> Iterator[Test]:
    """The conditions of a tree in the order in which they stand."""
    if isinstance(node, Test):
        yield node
    for part in parts_of(node):
        yield from tests_of(part)


def mapped(node: Node, change: Callable[[Test], Test]) -> Node:
    """The same tree of other conditions."""
    if isinstance(node, Test):
        return change(node)
    if isinstance(node, Not):
        return Not(mapped(node.part, change))
    return type(node)(tuple(mapped(part, change) for part in node.parts))


def depth_of(node: Node) -> int:
    """How many levels of `all`, `any` and `not` stand above the deepest condition."""
    return 0 if isinstance(node, Test) else 1 + max(map(depth_of, parts_of(node)), default=0)


def plain(node: Node) -> dict[str, Any]:
    """The tree as JSON has it; reading that gives an equal tree."""
    if isinstance(node, Test):
        operand = list(node.operand) if isinstance(node.operand, tuple) else node.operand
        return {"field": node.field, node.operator: operand}
    if isinstance(node, Not):
        return {"not": plain(node.part)}
    return {"all" if isinstance(node, All) else "any": [plain(part) for part in node.parts]}
