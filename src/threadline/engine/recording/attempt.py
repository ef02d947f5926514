"""One attempt at a call: each group of events is worked on, a person at a time, and becomes the changes to commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import StoredHistory
from threadline.engine.folding.late_arrival import take_in
from threadline.engine.folding.packing import body_of, encode_event, payload_digest
from threadline.engine.folding.person import VALUE_BYTES_MAX, Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.folding.refold import refold_person
from threadline.engine.recording import emission
from threadline.engine.recording.cascade import cascade
from threadline.engine.recording.change import FULL_EVENT_BYTES, Change
from threadline.engine.recording.conflicts import TOO_MANY_CHANGES, ConcurrencyConflict, UnrecordableEvents
from threadline.engine.recording.plans import EventPlan, Plans
from threadline.engine.recording.validation import Isolation, RecordRequest, ValidatedEvent
from threadline.engine.recording.working_set import WorkingSet
from threadline.engine.scheduled import effect_id, timer_put
from threadline.kernel.errors import StoreDamaged, Unavailable
from threadline.kernel.event import Event, Receipt, Recorded, event_id
from threadline.kernel.identity import MERGED
from threadline.kernel.limits import BATCH_WRITES_MAX, EVENT_TYPE_LENGTH_MAX
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
)
from threadline.kernel.projection import Look, State
from threadline.kernel.store import Batch, Delete, Key, LogEntry, Put, Store

LARGE_EVENT_BYTES = 16 * 1_024
"""An event of more bytes has the snapshot written: it may make a person too large, and is then refused itself."""

NOT_THE_POLICYS = (Unavailable, StoreDamaged, ConcurrencyConflict, UnrecordableEvents, MemoryError)
"""What may be raised while a policy reads and has another cause: the call fails or is tried again."""

Prepared = ValidatedEvent | Put | Timer | CancelTimer
"""A wish that can be granted without fail: an event, an effect, a timer."""


class Attempt:
    """Where events are appended one after the other, in changes. Nothing is written to the store here."""

    def __init__(
        self, store: Store, catalogue: Catalogue, people: WorkingSet, now: int, plans: Plans, isolation: Isolation
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.index = catalogue.index
        self.people = people
        self.now = now
        self.plans = plans
        self.isolation = isolation
        self.receipts: dict[int, Receipt] = {}
        self.ids: set[str] = set()
        """Ids that this attempt records, so that a call may hold the same event twice."""
        self.unsettled: set[str] = set()
        """Ids of events that wait for another attempt."""
        self.sealed: list[tuple[Change, Batch]] = []
        """The changes in the order in which they must commit."""
        self.loose: dict[Key, Sequence[Put | Delete]] = {}
        """Writes that belong to no person, such as the row of a new source: each of these a batch, by its first key."""
        self.quarantined: set[Key] = set()
        """Joins that this attempt quarantines for review, each in the batch of its event."""
        self.position = -1
        """Position of the request at work: every change that it touches decides on it."""
        self._open: dict[str, Change] = {}
        """The open change of each person, by person id."""
        self._touched: dict[str, int] = {}
        """By id of an event of this attempt: the projections that it has touched, as bits."""
        self._sealed_last: dict[str, int] = {}
        """Person id -> the place of the last batch that was sealed with this person in it."""

    # --- an event in its thread --------------------------------------------------------------

    def append(self, person: Person, thread: str, one: ValidatedEvent, plan: EventPlan) -> Recorded:
        """Give an event the next place in a thread and fold it."""
        event, request = one.event, one.request
        # An event and all that policies add because of it commit together: their room is taken beforehand.
        change = self.change(person, 3 + len(request.writes) + (plan.room if one.position >= 0 else 0))
        if request.writes:
            change.take(request.writes)
        sequence = person.heads[thread] = person.heads[thread] + 1
        recorded = Recorded(event, one.id, thread, sequence, self.now, request.cause)
        body = body_of(one.encoded, self.now, request.cause)
        change.entries.append(LogEntry(thread, sequence, event.occurred_at, event.type, one.id, one.digest, body))
        if len(body) > LARGE_EVENT_BYTES:
            change.large += len(body) > FULL_EVENT_BYTES
            person.tail = None
        if person.states.outdated and max(event.occurred_at, person.latest[0]) > self.now:
            # What is so until then begins with the states before this event.
            person.states.settle()
        person.pending.append(recorded)
        if person.tail is not None:
            # The next commit writes the states where a tail cannot lead to them.
            person.tail.append(bytes.fromhex(one.id))
        if plan.marks:
            for mark in plan.marks:
                for row in mark(recorded):
                    key = Key(row.table, row.partition, row.sort)
                    change.writes[key] = Put(key, row.value or b"\x00")
        if plan.steps:
            self._fold(person, recorded, plan, change)
        return recorded

    def _fold(self, person: Person, recorded: Recorded, plan: EventPlan, change: Change) -> None:
        if plan.rows:
            change.note_rows(person, self.catalogue, plan.rows)
        states, at = person.states, recorded.event.occurred_at
        latest = (at, recorded.id)
        if latest < person.latest or at > self.now or person.provisional is not None or states.outdated:
            # Late, or ahead of the clock.
            if not take_in(self, person, recorded, plan.steps, self.now, self._refolded):
                person.tail = None
            self._touched[recorded.id] = states.touched
        else:
            values, touched = states.values, 0
            for index, fold in plan.steps:
                state = fold(values[index], recorded)
                if state is not None:
                    values[index] = state
                    touched |= 1 << index
            self._touched[recorded.id] = touched
            person.latest = latest
        if plan.rows:
            change.count_rows(self.catalogue)

    def _refolded(self, person: Person, index: int) -> State:
        refold_person(self.store, self.catalogue, person, only=(index,), extra=person.pending)
        return person.states[index]

    def emit(self, person: Person, thread: str, event: Event, cause: str) -> Recorded:
        """Append an event that Threadline itself makes."""
        return self._append_own(person, thread, self._own(event, cause))

    def _own(self, event: Event, cause: str) -> ValidatedEvent:
        id = event_id(event.workspace, event.source, event.key)
        if id in self.ids or not 0 < len(event.type) <= EVENT_TYPE_LENGTH_MAX:
            raise ValueError(f"{event.source} emits {event.type[:80]!r} under a key that it has used, or too long")
        request = RecordRequest(event, cause)
        return ValidatedEvent(-1, request, event, id, payload_digest(event), encode_event(event), ())

    def _append_own(self, person: Person, thread: str, one: ValidatedEvent) -> Recorded:
        self.ids.add(one.id)
        return self.append(person, thread, one, self.plans.of(person.workspace, one.event.type))

    def history(self, person: Person) -> StoredHistory:
        """The person's events: those in the store and those of this attempt."""
        return StoredHistory(self.store, person.stored_heads(), person.pending)

    # --- where policies react --------------------------------------------------------------

    def react(self, person: Person, recorded: Recorded) -> None:
        """Let the policies react to an event and to what they add because of it."""
        if self.plans.of(person.workspace, recorded.event.type).policies:
            cascade(self, person, recorded)

    def reacting(self, recorded: Recorded) -> list[tuple[Policy, bool]]:
        """The policies that may be asked about an event, each with whether it has touched what the policy reads."""
        plan = self.plans.of(recorded.event.workspace, recorded.event.type)
        touched = self._touched.get(recorded.id, 0)
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
        return self._open[person.id].free

    def prepare(
        self, person: Person, cause: Recorded, policy: Policy, wishes: Sequence[Wish]
    ) -> list[tuple[Wish, Prepared]]:
        """Each wish with the form of it that `grant` takes. Raises for what the policy may not wish for, and for what
        no store can hold."""
        found = emission.checked(policy, wishes)
        return [(wish, self._prepared(person, cause, policy.name, wish)) for wish in found]

    def _prepared(self, person: Person, cause: Recorded, policy: str, wish: Wish) -> Prepared:
        if isinstance(wish, Emit):
            source, history = source_of(policy), emission.history_of(cause)
            event = emission.event_of(person, cause.thread, source, cause.id, wish, self.now, history)
            return self._own(event, cause.id)
        if isinstance(wish, Effect):
            id = effect_id(policy, cause.id, wish.key)
            return emission.effect_put(self.catalogue, person, cause, policy, wish, id)
        if isinstance(wish, Timer) and wish.data:
            timer_put(person.workspace, cause.thread, policy, wish)
        return wish

    def grant(self, person: Person, cause: Recorded, policy: str, prepared: Prepared) -> Recorded | None:
        """Carry a wish into the person's change; the recorded event if it was for one."""
        if isinstance(prepared, ValidatedEvent):
            return self._append_own(person, cause.thread, prepared)
        writes: Iterable[Put | Delete]
        writes = (prepared,) if isinstance(prepared, Put) else emission.timer_writes(person, cause, policy, prepared)
        for write in writes:
            self.change(person, 1).writes[write.key] = write
        return None

    def fail(self, person: Person, cause: Recorded, policy: Policy, error: Exception) -> Wish | None:
        """What says that a policy has raised about an event; re-raises what is no fault of the policy."""
        if isinstance(error, NOT_THE_POLICYS):
            raise error
        failure = emission.failure(policy.name, cause, error, self.now)
        if cause.event.type == TIMER_FIRED:
            # It is this policy's alone. Recorded it would be used up; refused it stays, and fires once the policy can.
            raise UnrecordableEvents([], "policy_failed", emission.failure_message(failure)) from error
        self.change(person).failures.append((cause.id, failure, error))
        # A policy that fails about failures would go on for ever; the log line says so.
        return None if cause.event.type == POLICY_FAILED else failure

    def cut(self, person: Person, cause: Recorded, policy: str) -> None:
        """Put in the thread that a cascade was cut at its limit, and by whom."""
        cut = emission.cut(policy, self.now)
        self.grant(person, cause, policy, self._prepared(person, cause, policy, cut))

    def look(self, index: int) -> Look:
        """How a projection is looked at: whole."""
        return self.catalogue.looks[index]

    def heeded(self, workspace: str, type: str) -> bool:
        """Whether a policy names events of this type."""
        return self.plans.heeded(workspace, type)

    def shared(self, workspace: str, name: str) -> Any:
        """The value of a policy's `Shared`."""
        return self.plans.shared(workspace, name)

    # --- changes ---------------------------------------------------------------------------

    def change(self, person: Person, room: int = 0) -> Change:
        """The person's open change with room for so many more writes; a full one is sealed first."""
        change = self._open.get(person.id)
        if change is not None and change.free < room:
            self.seal(change, interim=True)
            change = None
        if change is None:
            change = self._open[person.id] = Change(person)
            if person.unwritten:
                change.note_rows(person, self.catalogue, person.unwritten)
                change.count_rows(self.catalogue)
                person.unwritten = frozenset()
            self.people.touched[person.id] = person
        if self.position >= 0 and (not change.requests or change.requests[-1] != self.position):
            change.requests.append(self.position)
        return change

    def share(self, change: Change, person: Person) -> None:
        """Let a person be written by a change that is another's already: they commit together."""
        change.add(person)
        self.people.touched[person.id], self._open[person.id] = person, change

    def joined_change(self, survivor: Person, merged: Person) -> Change:
        """One change for two people who are being joined; it has room for the joining."""
        one, other = self.change(survivor), self.change(merged)
        room = 2 * len(merged.heads) + 9 + self.plans.of(survivor.workspace, MERGED).room
        if one is not other and one.free < other.size + len(other.rows_to_write) + room:
            self.seal(one)
            self.seal(other)
            one, other = self.change(survivor), self.change(merged)
        if one is not other:
            one.absorb(other)
            for id in other.ids:
                self._open[id] = one
        return one

    def seal(self, change: Change, *, interim: bool = False) -> None:
        """Make a batch of a change: nothing is added to it any more. ``interim``: another one of the same people comes.

        Raises `UnrecordableEvents` for what no batch can hold.
        """
        try:
            batch = change.seal(self.catalogue, interim=interim)
        except Exception as error:
            raise UnrecordableEvents(
                change.requests, "projection_failed", f"{type(error).__name__}: {error}"
            ) from error
        writes = batch.writes
        if max([len(write.value) for write in writes if write.__class__ is Put], default=0) > VALUE_BYTES_MAX:
            message = f"what is known of the person would exceed {VALUE_BYTES_MAX} bytes"
            raise UnrecordableEvents(change.requests, "person_too_large", message)
        if 2 * len(batch.events) + len(writes) > BATCH_WRITES_MAX:
            message = f"it would change more than {BATCH_WRITES_MAX} items at once; tags and groups count one each"
            raise UnrecordableEvents(change.requests, TOO_MANY_CHANGES, message)
        before = {self._sealed_last[id] for id in change.ids if id in self._sealed_last}
        self.sealed.append((change, batch._replace(builds_on=sorted(before)) if before else batch))
        for id in change.ids:
            self._sealed_last[id] = len(self.sealed) - 1
            self._open.pop(id, None)

    def seal_person(self, person: Person) -> None:
        """Let what comes next be of another batch."""
        self.seal(self.change(person))

    def seal_open(self) -> None:
        """Seal what is still open."""
        while self._open:
            self.seal(next(iter(self._open.values())))

    def begin(self) -> int:
        """Begin a group of events; answers where `undo` goes back to."""
        return len(self.sealed)

    def undo(self, mark: int, events: Sequence[ValidatedEvent]) -> None:
        """Take back what a group of events has come to; they wait for another attempt."""
        for change, _ in self.sealed[mark:]:
            for id in change.ids:
                self._sealed_last.pop(id, None)
        changes = [*(change for change, _ in self.sealed[mark:]), *self._open.values()]
        self.people.forget({id for change in changes for id in change.ids})
        # Whoever was only looked at may be another by now: that may be why there is nothing to commit.
        self.people.forget_owners(name.thread for one in events for name in one.names)
        del self.sealed[mark:]
        self._open.clear()
        for one in events:
            self.unsettled.add(one.id)
            self.receipts.pop(one.position, None)

    def batches(self) -> list[Batch]:
        """All batches, in the order in which they must commit."""
        return [batch for _, batch in self.sealed] + [Batch(writes=writes) for writes in self.loose.values()]

    def commit_apart(self, writes: Sequence[Put | Delete]) -> None:
        """Commit these together, in a batch that has nothing to do with anybody."""
        if writes:
            self.loose[writes[0].key] = writes

    def answers(self) -> dict[int, Receipt]:
        """The receipts that are settled; people who were merged since under the survivor's id."""
        departed, unsettled = self.people.departed, self.unsettled
        if not departed and not unsettled:
            return self.receipts
        answers = {}
        for position, receipt in self.receipts.items():
            if receipt.id in unsettled:
                continue  # whatever is said of an event a second time is not settled before the first is
            if receipt.person in departed:
                receipt = msgspec.structs.replace(receipt, person=self.people.person(receipt.person).id)
            answers[position] = receipt
        return answers
