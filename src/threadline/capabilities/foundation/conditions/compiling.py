"""Compiled conditions: what reads and checks each field of a tree, and closures that answer whether it matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions.operators import Check, check_of
from threadline.capabilities.foundation.conditions.tree import All, Node, Not, Path, Test, tests_of


class Leaf(NamedTuple):
    """One condition compiled. A value that is None matches if ``matches_missing``, any other if ``check`` is True."""

    test: Test
    read: Callable[[Any], Any]
    check: Check
    matches_missing: bool


_ABSENT = ("exists", False)


def leaves_of(tree: Node, reader: Callable[[Path], Callable[[Any], Any]]) -> tuple[Leaf, ...]:
    """The conditions of a tree in the order in which they are written; ``reader`` gives what reads a field."""
    return tuple(
        # Only `exists: false` matches what is missing or null.
        Leaf(test, reader(test.path), check_of(test.operator, test.operand), (test.operator, test.operand) == _ABSENT)
        for test in tests_of(tree)
    )


def compiled(tree: Node, leaves: Iterable[Leaf]) -> Callable[[Any], bool]:
    """Whether what the leaves read matches the tree that they are of."""
    return _compiled(tree, iter(leaves))


def _compiled(node: Node, leaves: Iterator[Leaf]) -> Callable[[Any], bool]:
    if isinstance(node, Test):
        return _compiled_test(next(leaves))
    if isinstance(node, Not):
        part = _compiled(node.part, leaves)
        return lambda subject: not part(subject)
    parts = tuple(_compiled(part, leaves) for part in node.parts)
    if len(parts) == 1:
        return parts[0]
    return _all(parts) if isinstance(node, All) else _any(parts)


def _compiled_test(leaf: Leaf) -> Callable[[Any], bool]:
    _, read, check, matches_missing = leaf

    def ask(subject: Any) -> bool:
        value = read(subject)
        return matches_missing if value is None else check(value) is True

    return ask


def _all(parts: tuple[Callable[[Any], bool], ...]) -> Callable[[Any], bool]:
    # Loops, not `all(…)`: a generator would cost as much as the conditions it asks.
    def ask(subject: Any) -> bool:
        for part in parts:  # noqa: SIM110
            if not part(subject):
                return False
        return True

    return ask


def _any(parts: tuple[Callable[[Any], bool], ...]) -> Callable[[Any], bool]:
    def ask(subject: Any) -> bool:
        for part in parts:  # noqa: SIM110
            if part(subject):
                return True
        return False

    return ask
