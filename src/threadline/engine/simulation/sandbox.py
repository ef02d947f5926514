"""A sandbox: one person's history replayed in memory, where nothing can be sent and nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import ReplayedHistory
from threadline.engine.folding.late_arrival import take_in
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.folding.refold import folded_before
from threadline.engine.folding.states import States
from threadline.engine.recording.reactions import (
    cascade,
    checked_wishes,
    cut_wish,
    event_of,
    failure_wish,
    goes_on,
    history_of,
    stays,
    writes_beside_events,
    writes_of_event,
)
from threadline.engine.scheduled import fired_properties
from threadline.engine.simulation.variant import Folded, Variant
from threadline.kernel.errors import StoreDamaged, Unavailable
from threadline.kernel.event import Identifier, Recorded, event_id
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.policy import (
    POLICY_FAILED,
    TIMER_FIRED,
    CancelTimer,
    Emit,
    Policy,
    PolicyView,
    Timer,
    Wish,
    source_of,
    why_after,
)
from threadline.kernel.projection import Look, State
from threadline.kernel.simulation import Decisions
from threadline.kernel.why import TIME, Why

TIMERS_MAX = 100_000
"""Timers that may fire for one person: a policy that sets one again and again must not hold up everybody else."""
_FOREVER = 1 << 63


class VariantsDiverged(Exception):
    """The wishes of two evaluators differ, or may be more than there is room for: each variant is simulated alone."""


class Decided(NamedTuple):
    """An event and what each evaluator decided about it."""

    recorded: Recorded
    decisions: tuple[Decisions, ...]


class SimulatedPerson:
    """One person, from their first event on. Events come in the order in which they became known."""

    def __init__(self, variant: Variant, workspace: str, person: str, identifiers: Mapping[str, Identifier]) -> None:
        self._variant = variant
        self.catalogue = variant.catalogue
        self._person = Person(person, workspace, 0, States(variant))
        for thread, identifier in identifiers.items():
            self._person.add_thread(thread, identifier)
        self._history = ReplayedHistory()
        self._scene = _Scene(variant, self._history, whole=True)
        self._deciding = _EvaluatorPolicy(variant, _Scene(variant, self._history, whole=False), self._person)
        # No reference leads back to this object: it is freed at once, without the garbage collector.
        self._evaluators = Policy(variant.evaluators[0].name, None, self._deciding.react)
        self._timers: dict[tuple[str, str], tuple[int, str, dict[str, Any]]] = {}
        """(policy, key) -> when it is due, in which thread, the properties of its event."""
        self._fired = 0
        self._now = 0
        self.evaluating = False
        """Whether the evaluators are asked: their range has begun."""
        self.cuts = 0
        """Events in that range of which more came than may come of one."""

    @property
    def decided(self) -> list[Decided]:
        """What the evaluators have decided."""
        return self._deciding.decided

    def replay(self, recorded: Recorded) -> None:
        """One event of the log, after everything that was due before it."""
        now = recorded.known_at
        if self._timers:
            self.pass_time(now)
        self._now = now
        self._take(recorded)

    def pass_time(self, until: int) -> None:
        """Let every timer fire that is due by then."""
        while self._timers:
            (policy, key), (due_at, thread, properties) = min(
                self._timers.items(), key=lambda item: (item[1][0], item[0])
            )
            if due_at > until:
                return
            self._fired += 1
            if self._fired > TIMERS_MAX:
                raise RuntimeError(f"policy {policy} keeps setting timers: {TIMERS_MAX:,} have fired for one person")
            del self._timers[policy, key]
            self._now = max(self._now, due_at)
            fired = Emit(type=TIMER_FIRED, key=f"{thread}/{key}/{due_at}", occurred_at=due_at, properties=properties)
            self._take(self._made(thread, f"sandbox:{policy}", "", fired, TIME, None))

    def at_end(self, at: int) -> ReactingPersonView:
        """The person at an instant after the last event, for who looks at the end."""
        return ReactingPersonView(self._deciding.scene, self._person, "", at)

    # --- one event ----------------------------------------------------------------------------

    def _take(self, recorded: Recorded) -> None:
        self._append(recorded)
        cascade(self, self._person, recorded)

    def _made(self, thread: str, source: str, cause: str, wish: Emit, why: Why, history: int | None) -> Recorded:
        event = event_of(self._person, thread, source, cause, wish, self._now, why, history)
        return Recorded(event, event_id(event.workspace, source, event.key), thread, 0, self._now, cause)

    def _append(self, recorded: Recorded) -> None:
        steps = self._variant.step_of(recorded.event).plan.steps
        if steps:
            self._person.heads[recorded.thread] += 1
            self._person.states.settle()
            self._history.add(recorded)
            take_in(self._scene, self._person, recorded, steps, self._now, self._refolded)

    def _refolded(self, person: Person, index: int) -> State:
        return folded_before(self._variant, self._history, _FOREVER, (index,))[index]

    # --- reactions ---------------------------------------------------------------------------

    def reacting(self, recorded: Recorded) -> list[tuple[Policy, bool]]:
        """The policies that react again and want to see an event, and the evaluators among them.

        Whatever it touches: a projection that nobody has asked for yet is not folded here.
        """
        policies = self._variant.step_of(recorded.event).reactors
        asked = (
            self._evaluators if policy is None else policy
            for policy in policies
            if policy is not None or self.evaluating
        )
        return [(policy, True) for policy in asked]

    def known(self, person: Person, recorded: Recorded) -> ReactingPersonView:
        """The person right after an event, which may be of imported history that was known when it occurred."""
        at = max(recorded.known_at, recorded.event.occurred_at) + 1
        return ReactingPersonView(self._scene, person, recorded.event.type, at)

    def writes_of(self, person: Person, policy: str, wish: Wish, prepared: Wish) -> int:
        """How many writes a wish would take; 0 for a timer that stays as it is."""
        if isinstance(wish, Emit):
            return writes_of_event(self.catalogue.plan(wish.type).marks)
        if isinstance(wish, Timer):
            pending = self._timers.get((policy, wish.key))
            if pending is not None and stays(wish, pending[:1]):
                return 0
        return writes_beside_events(wish)

    def free(self, person: Person) -> int:
        """No batch is committed here, so that none can be full."""
        return BATCH_WRITES_MAX

    def prepare(
        self, person: Person, cause: Recorded, policy: Policy, wishes: Sequence[Wish]
    ) -> list[tuple[Wish, Wish]]:
        """As they are: nothing is stored here. Two evaluators may use one key; a policy may not use one twice."""
        listed = wishes if policy is self._evaluators else checked_wishes(policy, wishes)
        return [(wish, wish) for wish in listed]

    def fail(self, person: Person, cause: Recorded, policy: Policy, error: Exception) -> Wish | None:
        """As in the thread; but what an evaluator raises ends the simulation: evaluators are what is compared."""
        ours = (VariantsDiverged, Unavailable, StoreDamaged, MemoryError)
        if policy is self._evaluators or isinstance(error, ours):
            raise error
        if cause.event.type == POLICY_FAILED:
            return None
        return failure_wish(policy.name, cause, error, self._now)

    def apply_wish(self, person: Person, cause: Recorded, policy: str, wish: Wish) -> Recorded | None:
        """Apply a wish. What would be sent goes nowhere: there is no outbox here."""
        if isinstance(wish, Emit):
            if not self._variant.matters(wish.type):
                return None
            why, history = why_after(cause, wish.occurred_at), history_of(cause)
            recorded = self._made(cause.thread, source_of(policy), cause.id, wish, why, history)
            self._append(recorded)
            return recorded
        if isinstance(wish, Timer):
            reason = goes_on(cause, wish.due_at) or ""
            properties = fired_properties(policy, wish.key, wish.data, history_of(cause), reason)
            self._timers[policy, wish.key] = (wish.due_at, cause.thread, properties)
        elif isinstance(wish, CancelTimer):
            self._timers.pop((policy, wish.key), None)
        return None

    def cut(self, person: Person, cause: Recorded, policy: str) -> None:
        """Count a cascade that was cut, and add the event of it where that is read."""
        if len(self._variant.evaluators) > 1:
            raise VariantsDiverged  # it may be cut for one of them only
        self.cuts += self.evaluating
        self.apply_wish(person, cause, policy, cut_wish(policy, self._now))


class _EvaluatorPolicy:
    """The evaluators of one simulated person, and what they have decided."""

    def __init__(self, variant: Variant, scene: _Scene, person: Person) -> None:
        self._variant = variant
        self.scene = scene
        self._person = person
        self.decided: list[Decided] = []

    def react(self, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        """As the policy in whose place they decide. They look at their own part of the person only."""
        asked = self._variant.step_of(recorded.event).evaluators
        evaluators = self._variant.evaluators[:asked]
        seen = ReactingPersonView(self.scene, self._person, recorded.event.type, known.at)
        decisions = tuple([evaluator.decisions(recorded, seen) for evaluator in evaluators])
        self.decided.append(
            Decided(recorded, decisions if len(evaluators) == len(self._variant.evaluators) else decisions * 2)
        )
        if not any(decisions):
            return ()
        matters = self._variant.matters
        wanted = [
            evaluator.wishes(recorded, decision, matters)
            for evaluator, decision in zip(evaluators, decisions, strict=True)
        ]
        if len(wanted) == 1:
            return wanted[0]
        first, second = wanted
        if [evaluators[0].alike(wish) for wish in first if self._noticed(wish)] != [
            evaluators[1].alike(wish) for wish in second if self._noticed(wish)
        ]:
            raise VariantsDiverged
        if [*map(_kind, first)] == [*map(_kind, second)]:
            return first
        # Nobody notices what else the other one wants, but it takes its room; where that ends, they part.
        return [*first, *(wish for wish in second if not self._noticed(wish))]

    def _noticed(self, wish: Wish) -> TypeGuard[Emit]:
        """Whether a wish changes anything that is looked at."""
        return isinstance(wish, Emit) and self._variant.matters(wish.type)


def _kind(wish: Wish) -> object:
    """What says how much room a wish takes."""
    return wish.type if isinstance(wish, Emit) else type(wish)


class _Scene:
    """A simulated person as policies see it, or as evaluators do, for whom only what they read is kept right."""

    def __init__(self, variant: Variant, history: ReplayedHistory, *, whole: bool) -> None:
        self._variant = variant
        self._history = history
        self._whole = whole
        self.catalogue: Catalogue = variant.catalogue
        self.index = Folded(variant, whole)

    def look(self, index: int) -> Look:
        """How a projection is looked at."""
        return self._variant.look(index, self._whole)

    def history(self, person: Person) -> ReplayedHistory:
        """The person's events so far."""
        return self._history

    def handled(self, workspace: str, type: str) -> bool:
        """Whether a evaluator or a policy that reacts again names events of this type."""
        return any(policy is None or policy.names_types for policy in self._variant.step(type).reactors)

    def shared(self, workspace: str, name: str) -> Any:
        """What policies share under a name."""
        return self._variant.shared[name]
