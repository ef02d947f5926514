"""The body of a rule: what is asked of an event and its person, and what came of it. Conditions are one kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from threadline.capabilities.foundation.conditions import Conditions, Node, Path, Step, Subject, Traced
from threadline.capabilities.foundation.conditions.tracing import plain_step

Inputs = dict[str, Any]
"""What was read: the name of each field, see `field_name`, and its value; None for what was missing."""


class Answer(Protocol):
    """What a body answered, see `Outcome`; parts that cost time may be made when they are read."""

    @property
    def matched(self) -> bool:
        """Whether it matches."""
        ...

    @property
    def output(self) -> dict[str, Any]:
        """What it computed beside that."""
        ...

    @property
    def trace(self) -> list[dict[str, Any]]:
        """The steps as a decision keeps them."""
        ...

    @property
    def inputs(self) -> Inputs:
        """What was read."""
        ...


class Outcome(NamedTuple):
    """What a body answered."""

    matched: bool
    output: dict[str, Any]
    """What it computed beside that; actions reach it as ``${output.…}``. Conditions compute nothing."""
    steps: list[Step]
    inputs: Inputs

    @property
    def trace(self) -> list[dict[str, Any]]:
        """See `Answer`."""
        return [plain_step(step) for step in self.steps]


class Body(Protocol):
    """What a rule asks. Immutable, and equal answers for equal subjects on every machine."""

    kind: str
    """The key under which it stands in a rule, such as ``conditions``."""

    @property
    def plain(self) -> Any:
        """What stands there, as JSON has it."""
        ...

    @property
    def reads(self) -> tuple[tuple[str, Path], ...]:
        """The projections whose views are read, and the steps inside each."""
        ...

    @property
    def tree(self) -> Node | None:
        """The conditions without which it never matches, for the index; None if there are none."""
        ...

    @property
    def test(self) -> Callable[[Subject], bool] | None:
        """Whether it matches: the fast way, which may raise what `evaluate` may. None where that is as fast."""
        ...

    def evaluate(self, subject: Subject) -> Answer:
        """Whether it matches, and why. What it raises makes the decision an error."""
        ...

    def again(self, inputs: Mapping[str, Any]) -> Answer:
        """The same from what was read before."""
        ...


class ConditionsBody:
    """A tree of conditions as the body of a rule."""

    kind = "conditions"

    def __init__(self, tree: Node) -> None:
        self._conditions = Conditions(tree)
        self.tree: Node | None = tree
        self.reads = self._conditions.reads
        self.test: Callable[[Subject], bool] | None = None
        self.evaluate: Callable[[Subject], Traced] = self._conditions.tracer.ask
        """See `Body`."""
        self.again: Callable[[Mapping[str, Any]], Traced] = self._conditions.tracer.again
        """See `Body`."""

    @property
    def plain(self) -> Any:
        """See `Body`."""
        return self._conditions.plain
