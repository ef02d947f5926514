"""The body of a rule: what is asked of an event and its person, and what came of it. Conditions are one kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from threadline.capabilities.decide.rules.hashing import field_name, inputs_of, plain_step
from threadline.capabilities.decide.rules.tracing import Traced, Tracer, is_flat
from threadline.capabilities.foundation.conditions import Conditions, Node, Path, Step, Subject

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
        flat = is_flat(tree)
        self.test: Callable[[Subject], bool] | None = None if flat else self._conditions.test
        self.evaluate: Callable[[Subject], Outcome | Traced] = (
            Tracer(self._conditions.leaves).ask if flat else self._trace
        )
        """See `Body`."""

    @property
    def plain(self) -> Any:
        """See `Body`."""
        return self._conditions.plain

    def _trace(self, subject: Subject) -> Outcome:
        trace = self._conditions.trace(subject)
        return Outcome(trace.matched, {}, trace.steps, inputs_of(trace.steps))

    def again(self, inputs: Mapping[str, Any]) -> Outcome:
        """See `Body`."""
        trace = self._conditions.retrace(lambda test: inputs.get(field_name(test.field)))
        return Outcome(trace.matched, {}, trace.steps, inputs_of(trace.steps))
