"""Compiled conditions: closures that answer whether a tree matches, and the trace that says why, made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

from threadline.capabilities.foundation.conditions.fields import RELATIVE, Subject, reader, reason_of, viewed
from threadline.capabilities.foundation.conditions.operators import Check, check_of
from threadline.capabilities.foundation.conditions.tree import All, Node, Not, Path, Test, plain, tests_of
from threadline.kernel.applied import IndexPart
from threadline.kernel.disclosure import NOT_PERSONAL, SENTENCE, free
from threadline.kernel.errors import InvalidValue


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


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition of a tree, as it was found or passed over."""

    step: int
    """From 1, in the order in which conditions stand in the tree."""
    field: Annotated[str | list[str], NOT_PERSONAL]
    operator: str
    expected: Annotated[Any, free(named_by="field")]
    actual: Annotated[Any, free(named_by="field")] = None
    matched: bool | None = None
    """None: it was skipped, because the answer was known before."""
    note: Annotated[str, NOT_PERSONAL] = ""
    """``missing``, ``type`` (the operator has no meaning for a value of that type) or ``skipped``."""
    reason: Annotated[str, SENTENCE] = ""
    """Why the view has no value for the field, or an incomplete one, if it says so."""


def step_of(number: int, test: Test, matched: bool | None, note: str, actual: Any = None) -> Step:
    """The step of a condition in a trace."""
    expected = list(test.operand) if isinstance(test.operand, tuple) else test.operand
    return Step(
        step=number,
        field=test.field,
        operator=test.operator,
        expected=expected,
        actual=actual,
        matched=matched,
        note=note,
    )


class Trace(NamedTuple):
    """Whether a tree matched, and every condition of it in order."""

    matched: bool
    steps: list[Step]


class Conditions:
    """A tree, ready to be asked. Immutable, and equal answers for equal subjects on every machine."""

    __slots__ = ("fields", "leaves", "reads", "relative", "test", "tree")

    def __init__(self, tree: Node) -> None:
        self.tree = tree
        self.leaves = leaves_of(tree, reader)
        self.test: Callable[[Subject], bool] = compiled(tree, self.leaves)
        """Whether a subject matches: the fast way, without a trace."""
        self.fields: tuple[Path, ...] = tuple(dict.fromkeys(test.path for test in tests_of(tree)))
        """The fields that are read, each once, in the order in which they stand."""
        self.reads: tuple[tuple[str, Path], ...] = tuple(view for path in self.fields if (view := viewed(path))[0])
        """Which projections' views are read, and the steps inside each; fields of the event are not among them."""
        self.relative: tuple[Test, ...] = tuple(test for test in tests_of(tree) if test.path[0] in RELATIVE)
        """The tests whose answer may change by time alone, whatever the views hold."""

    @property
    def parts(self) -> tuple[IndexPart, ...]:
        """What the views say by what is written for everybody, such as who belongs to a segment."""
        return tuple(IndexPart(name, path[0] if path else "", rows=False) for name, path in self.reads)

    @property
    def plain(self) -> dict[str, Any]:
        """The tree as JSON has it."""
        return plain(self.tree)

    def refuse_event_fields(self, param: str) -> None:
        """Raise `InvalidValue` for fields of an event, where people are chosen by what is known of them."""
        for path in self.fields:
            if not viewed(path)[0]:
                message = f"{param}: a person has no event; name what is known of them, not {'.'.join(path)}"
                raise InvalidValue(message, param=param.partition(".")[0])

    def trace(self, subject: Subject) -> Trace:
        """Whether a subject matches, and why: every condition with what was expected and what was found."""
        return self._trace(lambda leaf: leaf.read(subject))

    def explain(self, subject: Subject) -> Trace:
        """The same with the reasons that views give, for people; decisions are made without them, and faster."""
        matched, steps = self.trace(subject)
        return Trace(matched, [_reasoned(step, leaf, subject) for step, leaf in zip(steps, self.leaves, strict=True)])

    def retrace(self, value_of: Callable[[Test], Any]) -> Trace:
        """The same from values that were read before, one for each condition."""
        return self._trace(lambda leaf: value_of(leaf.test))

    def _trace(self, read: Callable[[Leaf], Any]) -> Trace:
        steps: list[Step] = []
        matched = self._traced(self.tree, read, steps, skip=False)
        return Trace(matched, steps)

    def _traced(self, node: Node, read: Callable[[Leaf], Any], steps: list[Step], skip: bool) -> bool:
        if isinstance(node, Test):
            steps.append(self._step(len(steps), read, skip))
            return bool(steps[-1].matched)
        if isinstance(node, Not):
            return not self._traced(node.part, read, steps, skip)
        settles = not isinstance(node, All)  # the answer of one part that settles the whole
        settled = False
        for part in node.parts:
            outcome = self._traced(part, read, steps, skip or settled)
            settled = settled or outcome is settles
        return settles if settled else not settles

    def _step(self, index: int, read: Callable[[Leaf], Any], skip: bool) -> Step:
        leaf = self.leaves[index]
        if skip:
            return step_of(index + 1, leaf.test, None, "skipped")
        actual = read(leaf)
        if actual is None:
            return step_of(index + 1, leaf.test, leaf.matches_missing, "missing")
        matched = leaf.check(actual)
        return step_of(index + 1, leaf.test, matched is True, "type" if matched is None else "", actual)


def _reasoned(step: Step, leaf: Leaf, subject: Subject) -> Step:
    reason = "" if step.matched is None else reason_of(subject, leaf.test.path)
    return msgspec.structs.replace(step, reason=reason) if reason else step


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
