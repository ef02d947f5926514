"""A tree compiled: closures that answer at once, and the trace that says why, made only when it is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.conditions.fields import Read, Subject, reader, viewed
from threadline.capabilities.conditions.operators import Check, check_of
from threadline.capabilities.conditions.tree import All, Node, Not, Path, Test, plain, tests_of

Ask = Callable[[Subject], bool]


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition of a tree, as it was found or passed over."""

    step: int
    """From 1, in the order in which conditions stand in the tree."""
    field: str | list[str]
    operator: str
    expected: Any
    actual: Any = None
    matched: bool | None = None
    """None: it was skipped, because the answer stood before it was its turn."""
    note: str = ""
    """``missing``, ``type`` (the operator has no meaning for a value of that type) or ``skipped``."""


class Trace(NamedTuple):
    """Whether a tree matched, and every condition of it in order."""

    matched: bool
    steps: list[Step]


class Conditions:
    """A tree, ready to be asked. Immutable, and equal answers for equal subjects on every machine."""

    __slots__ = ("_leaves", "fields", "reads", "test", "tree")

    def __init__(self, tree: Node) -> None:
        self.tree = tree
        self.test: Ask = _compiled(tree)
        """Whether a subject matches: the fast way, without a trace."""
        self.fields: tuple[Path, ...] = tuple(dict.fromkeys(test.path for test in tests_of(tree)))
        """The fields that are read, each once, in the order in which they stand."""
        self.reads: tuple[tuple[str, Path], ...] = tuple(place for path in self.fields if (place := viewed(path))[0])
        """Which projections' views are read, and the steps inside each; fields of the event are not among them."""
        self._leaves = [(test, reader(test.path), value_check(test)) for test in tests_of(tree)]

    @property
    def plain(self) -> dict[str, Any]:
        """The tree as JSON has it."""
        return plain(self.tree)

    def trace(self, subject: Subject) -> Trace:
        """Whether a subject matches, and why: every condition with what was expected and what was found."""
        steps: list[Step] = []
        leaves = self._leaves
        matched = self._traced(self.tree, lambda index: leaves[index][1](subject), steps, skip=False)
        return Trace(matched, steps)

    def retrace(self, found: Callable[[Test], Any]) -> Trace:
        """The same of what was read before: ``found`` gives the value of a condition's field."""
        steps: list[Step] = []
        leaves = self._leaves
        matched = self._traced(self.tree, lambda index: found(leaves[index][0]), steps, skip=False)
        return Trace(matched, steps)

    def _traced(self, node: Node, read: Callable[[int], Any], steps: list[Step], skip: bool) -> bool:
        if isinstance(node, Test):
            step = self._step(read, len(steps), skip)
            steps.append(step)
            return bool(step.matched)
        if isinstance(node, Not):
            return not self._traced(node.part, read, steps, skip)
        settles = not isinstance(node, All)  # the answer of one part that settles the whole
        settled = False
        for part in node.parts:
            outcome = self._traced(part, read, steps, skip or settled)
            settled = settled or outcome is settles
        return settles if settled else not settles

    def _step(self, read: Callable[[int], Any], index: int, skip: bool) -> Step:
        test, _, check = self._leaves[index]
        expected = list(test.operand) if isinstance(test.operand, tuple) else test.operand
        actual = matched = None
        note = "skipped"
        if not skip:
            actual = read(index)
            matched = check(actual)
            note = "missing" if actual is None else "type" if matched is None else ""
        return Step(
            step=index + 1, field=test.field, operator=test.operator, expected=expected, actual=actual,
            matched=None if skip else bool(matched), note=note,
        )  # fmt: skip


def value_check(test: Test) -> Check:
    """The check of a condition for any value, None included: what is missing matches nothing but `exists: false`."""
    if test.operator == "exists":
        wanted = test.operand
        return lambda value: (value is not None) is wanted
    check = check_of(test.operator, test.operand)
    return lambda value: None if value is None else check(value)


def _compiled(node: Node) -> Ask:
    if isinstance(node, Test):
        return _compiled_test(node, reader(node.path))
    if isinstance(node, Not):
        part = _compiled(node.part)
        return lambda subject: not part(subject)
    parts = tuple(map(_compiled, node.parts))
    if len(parts) == 1:
        return parts[0]
    return _all(parts) if isinstance(node, All) else _any(parts)


def _compiled_test(test: Test, read: Read) -> Ask:
    if test.operator == "exists":
        wanted = test.operand
        return lambda subject: (read(subject) is not None) is wanted
    check = check_of(test.operator, test.operand)

    def ask(subject: Subject) -> bool:
        value = read(subject)
        return value is not None and check(value) is True

    return ask


def _all(parts: tuple[Ask, ...]) -> Ask:
    # Loops, not `all(…)`: a generator would cost as much as the conditions it asks.
    def ask(subject: Subject) -> bool:
        for part in parts:  # noqa: SIM110
            if not part(subject):
                return False
        return True

    return ask


def _any(parts: tuple[Ask, ...]) -> Ask:
    def ask(subject: Subject) -> bool:
        for part in parts:  # noqa: SIM110
            if part(subject):
                return True
        return False

    return ask
