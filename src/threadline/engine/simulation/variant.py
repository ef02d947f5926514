"""One variant of a simulation. Folds only projections that are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from threadline.engine.folding.catalogue import Catalogue, Plan
from threadline.kernel.event import Event
from threadline.kernel.event_type import EventTypes
from threadline.kernel.policy import TIMER_FIRED, Policy, policy_of
from threadline.kernel.projection import Look, State
from threadline.kernel.simulation import Evaluator


class ProjectionNotFolded(BaseException):
    """Somebody asked for a projection that is not folded; the person is simulated again with it.

    It is no `Exception`, because a rule takes every one of those that it meets for an error of its own.
    """

    def __init__(self, index: int, whole: bool) -> None:
        super().__init__(index, whole)
        self.index = index
        self.whole = whole


class _Step(NamedTuple):
    """What an event of one type does in a sandbox."""

    plan: Plan
    """What it changes of what is folded."""
    reactors: tuple[Policy | None, ...]
    """The policies that react again and want to see it, in order; None in the place of the evaluators."""
    evaluators: int
    """How many of the evaluators have to be asked: one for all where they decide alike."""
    matters: bool
    """Whether it does anything at all."""


class Variant:
    """A catalogue, the evaluators and the policies that react again.

    Of the projections only those are folded that somebody has asked for; which these are is found out by asking. Of one
    that only the evaluators read, only what they read is kept right: events that cannot change it are left out.
    """

    def __init__(
        self, catalogue: Catalogue, evaluators: Sequence[Evaluator], replayed: Set[str], shared: Mapping[str, Any]
    ) -> None:
        self.catalogue = catalogue
        self.projections = catalogue.projections
        self.evaluators = tuple(evaluators)
        self.replayed = frozenset(replayed)
        self.shared = shared
        self._folded: dict[int, bool] = {}
        """Index of each projection that is folded, and whether whole."""
        self._evaluated = {evaluator.name for evaluator in evaluators}
        self._paths: dict[str, list[tuple[str, ...]]] = {}
        for name, path in dict.fromkeys(read for evaluator in evaluators for read in evaluator.reads):
            self._paths.setdefault(name, []).append(path)
        self._looks: dict[int, Look] = {}
        self._policies = tuple(p for p in catalogue.policies if p.name in self.replayed | self._evaluated)
        self._steps: dict[str, _Step] = {}
        self.epoch = 0
        """Grows whenever more is folded than before, and so more events matter."""

    def step(self, event_type: str) -> _Step:
        """What an event of this type does."""
        step = self._steps.get(event_type)
        if step is None:
            plan = self.catalogue.plan(event_type)
            plan = plan._replace(steps=tuple(step for step in plan.steps if self._counts(step[0], event_type)))
            reacting = self.catalogue.reactors(event_type)
            reactors = tuple(
                None if policy.name in self._evaluated else policy
                for policy in self._policies
                if (self._heeded(event_type) if policy.name in self._evaluated else policy in reacting)
            )
            first, *others = self.evaluators
            alike = all(evaluator.decides_as(first, event_type) for evaluator in others)
            step = self._steps[event_type] = _Step(
                plan, reactors, 1 if alike else len(self.evaluators), bool(plan.steps or reactors)
            )
        return step

    @property
    def event_types(self) -> EventTypes:
        """See `threadline.engine.folding.catalogue.Folding`."""
        return self.catalogue.event_types

    def step_of(self, event: Event) -> _Step:
        """What an event does."""
        return self.step(self.catalogue.event_types.counts_as(event))

    def plan(self, event_type: str) -> Plan:
        """What an event of this type changes of what is folded; see `threadline.engine.folding.catalogue.Folding`."""
        return self.step(event_type).plan

    def empty(self) -> list[State]:
        """The states of a person of whom nothing is known."""
        return self.catalogue.empty()

    def matters(self, event_type: str) -> bool:
        """Whether an event of this type does anything at all."""
        return self.step(event_type).matters

    def _heeded(self, event_type: str) -> bool:
        return any(evaluator.handles(event_type) for evaluator in self.evaluators)

    def _counts(self, index: int, event_type: str) -> bool:
        whole = self._folded.get(index)
        if whole is not False:
            return whole is True
        name = self.catalogue.projections[index].name
        return any(self.catalogue.touches(event_type, name, path) for path in self._paths[name])

    def fold_also(self, index: int, whole: bool) -> None:
        """Fold one more projection from now on, or more of one."""
        self._folded[index] = whole
        self._steps.clear()
        self.epoch += 1

    def index(self, name: str, whole: bool) -> int | None:
        """The place of a projection; None if there is none of that name. Raises `ProjectionNotFolded`."""
        index = self.catalogue.index.get(name)
        if index is None:
            return None
        whole = whole or name not in self._paths
        folded = self._folded.get(index)
        if folded is None or (whole and not folded):
            raise ProjectionNotFolded(index, whole)
        return index

    def look(self, index: int, whole: bool) -> Look:
        """How a projection is looked at."""
        projection = self.catalogue.projections[index]
        if whole or projection.faster.view is None or projection.name not in self._paths:
            return projection.look
        look = self._looks.get(index)
        if look is None:
            paths = self._paths[projection.name]
            names = frozenset(path[0] for path in paths if path)
            made = projection.faster.view(names) if all(paths) else projection.look
            look = self._looks[index] = made
        return look

    def leaves_out(self, event: Event, evaluating: bool) -> bool:
        """Whether an event of the log is one that this variant brings about itself.

        Policies react again from the first event on, evaluators from where their range begins.
        """
        if event.source_type != "internal":
            return False
        if event.type == TIMER_FIRED:
            return event.properties.get("policy") in self.replayed
        policy = policy_of(event.source)
        return policy in self.replayed or (evaluating and policy in self._evaluated)


class Folded:
    """Indexes of the folded projections, by name; `ProjectionNotFolded` for another one."""

    def __init__(self, variant: Variant, whole: bool) -> None:
        self._variant = variant
        self._whole = whole

    def __getitem__(self, name: str) -> int:
        index = self.get(name)
        if index is None:
            raise KeyError(name)
        return index

    def get(self, name: str) -> int | None:
        """The place of a projection; None if there is none of that name."""
        return self._variant.index(name, self._whole)
