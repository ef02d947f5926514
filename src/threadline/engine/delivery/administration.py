"""Delivery as operators see and steer it: one effect, the dead letters, and the queues."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from threadline.engine.delivery import attempts, backlog, circuit, dead_letters, unknown
from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.outcomes import caused_effects, effect_of
from threadline.engine.delivery.preparing import prepare
from threadline.engine.delivery.settling import resolve
from threadline.engine.scheduled import (
    due_effects,
    due_of,
    effect_id,
    pending_effect,
    pending_timer,
    pending_timers,
    postponed_writes,
    timer_key,
)
from threadline.kernel.event import Recorded
from threadline.kernel.outbox import (
    Attempt,
    Backlog,
    CausedEffect,
    DeadLetter,
    DueTimer,
    EffectStatus,
    Foreseen,
    PendingEffect,
    QueueState,
    UnknownEffect,
)
from threadline.kernel.preparation import Answer, Postponed
from threadline.kernel.sender import Outcome
from threadline.kernel.store import Batch
from threadline.kernel.time import LATEST, time_key


class Delivery:
    """The outbox of one store."""

    def __init__(self, engine: EngineAccess) -> None:
        self._engine = engine
        self._recorder = recorder = engine.recorder
        self._reader = engine.reader
        self._store = recorder.store
        self._queues = recorder.catalogue.queues

    def effect(self, workspace: str, policy: str, cause: str, key: str, at: int) -> EffectStatus:
        """The effect that a policy emitted for an event, and its outcomes."""
        return effect_of(self._store, self._queues, workspace, effect_id(policy, cause, key), at)

    def caused_by(self, events: Sequence[Recorded], without: str) -> list[CausedEffect]:
        """The effects that policies emitted because of these events, those of one policy apart.

        Outcomes are looked for among the same events.
        """
        others = (policy for policy in self._recorder.catalogue.policies if policy.name != without)
        waiting = any(other.sends is None or other.sends for other in others)
        effects = caused_effects(self._store, self._queues if waiting else None, events)
        return [effect for effect in effects if effect.policy != without]

    def waiting(self, threads: Container[str]) -> Iterator[PendingEffect]:
        """The effects that wait for their first or next attempt, of people who have these threads."""
        waiting = map(pending_effect, due_effects(self._store, self._queues, ""))
        return (pending for pending in waiting if pending.thread in threads)

    def foresee(self, waiting: Sequence[PendingEffect]) -> dict[str, Foreseen]:
        """By the id of each of these effects what would become of it now; effects of people who have gone are left
        out."""
        people = self._reader.by_threads([pending.thread for pending in waiting])
        wave = [(pending, person) for pending in waiting if (person := people.get(pending.thread)) is not None]
        answers = prepare(self._engine, wave, self._recorder.now())
        return {id: _foreseen(answer) for id, answer in answers.items()}

    def hasten(self, workspace: str, policy: str, within: int, wanted: Callable[[PendingEffect], bool]) -> int:
        """Make due now what was postponed, of those effects of a policy that are wanted and due within so many
        microseconds; returns how many are."""
        now = self._recorder.clock()
        waiting = map(pending_effect, due_effects(self._store, self._queues, time_key(now)))
        near = takewhile(lambda pending: due_of(pending.item) <= now + within, waiting)
        ours = (
            effect for effect in near if effect.postponed and (effect.workspace, effect.policy) == (workspace, policy)
        )
        # Refused for one that somebody has taken meanwhile: it is asked about anyway.
        return sum(
            self._store.commit([Batch(writes=postponed_writes(pending, now))])[0] is None
            for pending in ours
            if wanted(pending)
        )

    def timers(self, names: Mapping[str, int]) -> list[dict[str, Any]]:
        """Pending timers of a person by due time; one that has fired since the person was read is left out."""
        keys = []
        for name, due_at in sorted(names.items(), key=lambda item: (item[1], item[0])):
            thread, policy, key = name.split("/", 2)
            keys.append(timer_key(thread, policy, key, due_at))
        timers = [pending_timer(item) for item in self._store.get(keys) if item is not None]
        return [
            {"policy": timer.policy, "key": timer.key, "due_at": due_of(timer.item), "data": timer.data}
            for timer in timers
        ]

    def pending_timers(self, workspace: str, after: str = "", limit: int = 100) -> list[DueTimer]:
        """The timers of a workspace by due time, after the cursor of one."""
        pending = pending_timers(self._store, LATEST, after, expected=limit)
        timers = islice((timer for timer in pending if timer.workspace == workspace), limit)
        return [
            DueTimer(timer.thread, timer.policy, timer.key, due_of(timer.item), timer.data, timer.item.key.sort)
            for timer in timers
        ]

    def dead_letters(self, workspace: str, queue: str = "", after: str = "", limit: int = 100) -> list[DeadLetter]:
        """A page of the effects that were given up on, by queue and time; ``queue`` "" is all of them, "-" of none."""
        return dead_letters.page(self._store, workspace, queue, after, limit)

    def redrive(self, letters: Sequence[DeadLetter], by: str) -> int:
        """Make dead letters due again; returns how many are."""
        return dead_letters.redrive(self._recorder, self._reader, letters, by)

    def unknown(self, workspace: str, after: str = "", limit: int = 100) -> list[UnknownEffect]:
        """A page of the effects that were claimed and of which nobody knows whether they happened."""
        return unknown.page(self._store, workspace, after, limit)

    def resolve(self, workspace: str, effect: str, outcome: Outcome | None, by: str) -> bool:
        """Settle an unknown effect as if its sender had returned this outcome; whether it was unknown."""
        unknown_effect = unknown.unknown_effect(self._store, workspace, effect)
        return unknown_effect is not None and resolve(self._recorder, self._reader, unknown_effect, outcome, by)

    def attempts(
        self, workspace: str, queue: str = "", delivered: bool | None = None, before: str = "", limit: int = 100
    ) -> list[Attempt]:
        """Attempts whose requests are shown, the newest first, before the id of one; ``delivered`` None: both."""
        return attempts.page(self._store, workspace, queue, delivered, before, limit)

    def attempt(self, workspace: str, id: str) -> Attempt:
        """One of them; raises `NotFound`."""
        return attempts.attempt(self._store, workspace, id)

    def attempts_of(self, threads: Iterable[str]) -> Iterator[Attempt]:
        """Those about somebody who has these threads."""
        return attempts.attempts_of(self._store, threads)

    def send_again(self, last: Attempt, by: str) -> bool:
        """Make due now what was attempted last, whatever came of it; whether it is. Raises `Conflict`."""
        if (letter := dead_letters.after_attempt(self._store, last)) is not None:
            return self.redrive([letter], by) > 0
        return attempts.send_again(self._store, last, self._recorder.clock())

    def queues(self) -> list[QueueState]:
        """The declared queues, with the state of each and what waits in it."""
        return backlog.queue_states(self._store, self._queues)

    def backlog(self) -> Backlog:
        """Everything that waits: in the declared queues, in none, timers and jobs."""
        return backlog.backlog(self._store, self._queues, self._recorder.clock())

    def unbelieved_leases(self, now: int) -> dict[str, int]:
        """Leases whose end no clock can have meant: name -> that end. Nobody waits for it."""
        return backlog.unbelieved_leases(self._store, self._queues, now)

    def stop(self, queue: str, why: str) -> bool:
        """Stop sending in a queue; returns whether that changes anything. Raises `NotFound`."""
        return circuit.stop_queue(self._store, self._recorder.clock, self._queues, queue, why)

    def start(self, queue: str) -> bool:
        """Resume sending in a queue; returns whether that changes anything. Raises `NotFound`."""
        return circuit.start_queue(self._store, self._queues, queue)


def _foreseen(answer: Answer) -> Foreseen:
    if isinstance(answer, Postponed):
        return Foreseen(why=answer.why, until=answer.until)
    if isinstance(answer, Outcome):
        given = answer.properties
        why = given.get("reason") or given.get("why") or given.get("error") or answer.parked
        return Foreseen(answer.type, str(why))
    return Foreseen()
