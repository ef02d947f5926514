"""A tree of conditions, ready to be asked: whether a subject matches, why, and what that depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from threadline.capabilities.foundation.conditions.compiling import Leaf, compiled, leaves_of
from threadline.capabilities.foundation.conditions.fields import RELATIVE, Subject, reader, reason_of, viewed
from threadline.capabilities.foundation.conditions.tracing import Step, Traced, Tracer
from threadline.capabilities.foundation.conditions.tree import Node, Path, Test, plain, tests_of
from threadline.kernel.applied import IndexPart
from threadline.kernel.errors import InvalidValue


class Conditions:
    """A tree, ready to be asked. Immutable, and equal answers for equal subjects on every machine."""

    __slots__ = ("fields", "leaves", "reads", "relative", "test", "tracer", "tree")

    def __init__(self, tree: Node) -> None:
        self.tree = tree
        self.leaves = leaves_of(tree, reader)
        self.test: Callable[[Subject], bool] = compiled(tree, self.leaves)
        """Whether a subject matches: the fast way, without a trace."""
        self.tracer = Tracer(tree, self.leaves)
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

    def trace(self, subject: Subject) -> Traced:
        """Whether a subject matches, and why: every condition with what was expected and what was found."""
        return self.tracer.ask(subject)

    def explain(self, subject: Subject) -> list[Step]:
        """The steps of it with the reasons that views give, for people; decisions are made without them, and faster."""
        steps = self.trace(subject).steps
        return [_reasoned(step, leaf, subject) for step, leaf in zip(steps, self.leaves, strict=True)]


def _reasoned(step: Step, leaf: Leaf, subject: Subject) -> Step:
    reason = "" if step.matched is None else reason_of(subject, leaf.test.path)
    return msgspec.structs.replace(step, reason=reason) if reason else step
