"""Reactions: policies are asked about an event of an attempt, and what they wish for goes into the person's change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from threadline.engine.folding.history import StoredHistory
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.recording import emission
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.cascade import cascade
from threadline.engine.recording.retry import ConcurrencyConflict, UnrecordableEvents
from threadline.engine.recording.validation import ValidatedEvent
from threadline.engine.scheduled import timer_put
from threadline.kernel.errors import StoreDamaged, Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.policy import (
    POLICY_FAILED,
    TIMER_FIRED,
    CancelTimer,
    Effect,
    Emit,
    Policy,
    Timer,
    Wish,
    source_of,
    why_after,
)
from threadline.kernel.projection import Look
from threadline.kernel.store import Delete, Put

NOT_THE_POLICYS = (Unavailable, StoreDamaged, ConcurrencyConflict, UnrecordableEvents, MemoryError)
"""What may be raised while a policy reads and has another cause: the call fails or is tried again."""

Prepared = ValidatedEvent | Put | Timer | CancelTimer
"""A wish that can be applied without fail: an event, an effect, a timer."""


def react(attempt: Attempt, person: Person, recorded: Recorded) -> None:
    """Let the policies react to an event and to what they add because of it."""
    if attempt.plans.of_event(recorded.event).policies:
        cascade(Reactions(attempt), person, recorded)


class Reactions:
    """The stage of a cascade in an attempt; see `threadline.engine.recording.cascade.Stage`. Views of people are read
    in it, so it is their scene as well."""

    __slots__ = ("_attempt", "_effects", "catalogue", "index")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._effects = 0
        """How many were requested in this cascade: mails of one instant leave in the order of their requests."""
        self.catalogue = attempt.catalogue
        self.index = attempt.catalogue.index

    def reacting(self, recorded: Recorded) -> list[tuple[Policy, bool]]:
        """The policies that may be asked about an event, each with whether it has touched what the policy reads."""
        plan = self._attempt.plans.of_event(recorded.event)
        touched = self._attempt.touched.get(recorded.id, 0)
        return [
            (policy, bool(reads & touched))
            for policy, reads in zip(plan.policies, plan.reads, strict=True)
            if not reads or reads & touched or policy.unsettled is not None
        ]

    def known(self, person: Person, recorded: Recorded) -> ReactingPersonView:
        """A person right after an event, as policies see them."""
        # An event from a clock that runs ahead is no later for what is decided because of it.
        at = max(recorded.recorded_at, recorded.event.occurred_at) + 1
        return ReactingPersonView(self, person, recorded.event.type, at)

    def idle(self, person: Person, policy: str, wish: Wish) -> bool:
        """Whether a wish is for a timer that stays as it is."""
        return emission.is_idle(person, policy, wish)

    def free(self, person: Person) -> int:
        """How many more writes fit into the batch that the person's events are in."""
        return self._attempt.changes.of(person).free

    def prepare(
        self, person: Person, cause: Recorded, policy: Policy, wishes: Sequence[Wish]
    ) -> list[tuple[Wish, Prepared]]:
        """Each wish with its form for `apply_wish`. Raises for a wish that is undeclared, or that no store can hold."""
        checked = emission.checked(policy, wishes)
        return [(wish, self._prepared(person, cause, policy.name, wish)) for wish in checked]

    def _prepared(self, person: Person, cause: Recorded, policy: str, wish: Wish) -> Prepared:
        if isinstance(wish, Emit):
            why, history = why_after(cause, wish.occurred_at), emission.history_of(cause)
            event = emission.event_of(
                person, cause.thread, source_of(policy), cause.id, wish, self._attempt.now, why, history
            )
            return self._attempt.own(event, cause.id)
        if isinstance(wish, Effect):
            self._effects += 1
            return emission.effect_put(self.catalogue, person, cause, policy, wish, self._effects)
        if isinstance(wish, Timer) and wish.data:
            timer_put(person.workspace, cause.thread, policy, wish)
        return wish

    def apply_wish(self, person: Person, cause: Recorded, policy: str, prepared: Prepared) -> Recorded | None:
        """Add a wish to the person's change; returns the event if it emits one."""
        if isinstance(prepared, ValidatedEvent):
            return self._attempt.append_own(person, cause.thread, prepared)
        writes: Iterable[Put | Delete] = (
            (prepared,) if isinstance(prepared, Put) else emission.timer_writes(person, cause, policy, prepared)
        )
        for write in writes:
            self._attempt.changes.of(person, 1).writes[write.key] = write
        return None

    def fail(self, person: Person, cause: Recorded, policy: Policy, error: Exception) -> Wish | None:
        """The wish for the event that says that a policy raised; re-raises what is no fault of the policy."""
        if isinstance(error, NOT_THE_POLICYS):
            raise error
        failure = emission.failure(policy.name, cause, error, self._attempt.now)
        if cause.event.type == TIMER_FIRED:
            # The timer belongs to this policy. Recorded, it would be lost; refused, it stays, and fires again.
            raise UnrecordableEvents([], "policy_failed", emission.failure_message(failure)) from error
        self._attempt.changes.of(person).failures.append((cause.id, failure, error))
        # A policy that fails about failures would go on for ever; a log line is enough.
        return None if cause.event.type == POLICY_FAILED else failure

    def cut(self, person: Person, cause: Recorded, policy: str) -> None:
        """Emit the event that says that a cascade was cut at its limit."""
        cut = emission.cut(policy, self._attempt.now)
        self.apply_wish(person, cause, policy, self._prepared(person, cause, policy, cut))

    def look(self, index: int) -> Look:
        """The view function of a projection."""
        return self.catalogue.looks[index]

    def history(self, person: Person) -> StoredHistory:
        """The person's events: those in the store and those of this attempt."""
        return self._attempt.history(person)

    def handled(self, workspace: str, type: str) -> bool:
        """Whether a policy names events of this type."""
        return self._attempt.plans.handled(workspace, type)

    def shared(self, workspace: str, name: str) -> Any:
        """The value of a policy's `Shared`."""
        return self._attempt.plans.shared(workspace, name)
