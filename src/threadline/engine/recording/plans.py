"""Plans: folds, rows and policies for each event type of a workspace, computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from threadline.engine.folding.catalogue import PLANS_CACHED, Catalogue
from threadline.engine.shared import SharedValues
from threadline.kernel.event import Event, Recorded
from threadline.kernel.limits import CASCADE_EVENTS_MAX
from threadline.kernel.policy import Policy
from threadline.kernel.projection import Fold, Row


class EventPlan(NamedTuple):
    """Folds, rows and policies of one event type in one workspace."""

    steps: tuple[tuple[int, Fold], ...]
    """Index of each projection touched, and its fold."""
    rows: tuple[int, ...]
    """Those of the projections whose index rows may change."""
    marks: tuple[Callable[[Recorded], Iterable[Row]], ...]
    """What makes the rows of the event itself."""
    policies: tuple[Policy, ...]
    """The policies that may be asked."""
    reads: tuple[int, ...]
    """Of each policy: the projections one of which the event must touch, as bits; 0 if it is always asked."""
    awaits: int
    """All of `reads`; -1 if there is a policy that may be asked whatever the event touches."""
    room: int
    """Writes to reserve for these policies: an event and its consequences commit together."""


class Plans:
    """The plans of one catalogue. Not thread-safe: used under the recorder's lock."""

    def __init__(self, catalogue: Catalogue, values: SharedValues) -> None:
        self._catalogue = catalogue
        self._values = values
        self._names = tuple({p.shared.name: None for p in catalogue.policies if p.shared is not None})
        self._shared: dict[str, dict[str, Any]] = {}
        self._plans: dict[str, dict[str, EventPlan]] = {}

    def refresh(self, workspaces: Iterable[str]) -> None:
        """Read the shared values of these workspaces. Called before the clock is read, so that the values that decide
        about an event were in force by its time."""
        for workspace in workspaces:
            known = self._shared.get(workspace)
            shared: dict[str, Any] = {}
            changed = known is None
            for name in self._names:
                value = shared[name] = self._values.current(workspace, name)
                changed = known is None or changed or value is not known[name]
            if changed:
                if len(self._shared) >= PLANS_CACHED:
                    self._shared.clear()
                    self._plans.clear()
                self._shared[workspace], self._plans[workspace] = shared, {}

    def of(self, workspace: str, event_type: str) -> EventPlan:
        """The plan of the events of a type."""
        plans = self._plans.get(workspace)
        if plans is None:
            self.refresh((workspace,))
            plans = self._plans[workspace]
        plan = plans.get(event_type)
        if plan is None:
            if len(plans) >= PLANS_CACHED:
                plans.clear()
            plan = plans[event_type] = self._made(workspace, event_type)
        return plan

    def of_event(self, event: Event) -> EventPlan:
        """The plan of an event as which it counts: that of its type, if its speaker may say it."""
        return self.of(event.workspace, self._catalogue.event_types.counts_as(event))

    def _made(self, workspace: str, event_type: str) -> EventPlan:
        plan = self._catalogue.plan(event_type)
        policies = tuple(
            policy
            for policy in self._catalogue.reactors(event_type)
            if policy.shared is None or policy.shared.handles(self.shared(workspace, policy.shared.name), event_type)
        )
        reads = tuple(self._reads(policy) if policy.goes_by_touch(event_type) else 0 for policy in policies)
        awaits = 0
        for policy, bits in zip(policies, reads, strict=True):
            awaits |= bits if bits and policy.unsettled is None else -1
        room = 2 * CASCADE_EVENTS_MAX if policies else 0
        return EventPlan(plan.steps, plan.rows, plan.marks, policies, reads, awaits, room)

    def _reads(self, policy: Policy) -> int:
        return sum({1 << self._catalogue.index[read.projection] for read in policy.reads})

    def shared(self, workspace: str, name: str) -> Any:
        """The value of a policy's `Shared`, the same for a whole attempt."""
        return self._shared[workspace][name]

    def handled(self, workspace: str, event_type: str) -> bool:
        """Whether a policy names events of this type."""
        return any(policy.names_types for policy in self.of(workspace, event_type).policies)
