"""One attempt at a call: events are appended one after the other, folded, and collected in changes to commit."""

from __future__ import annotations

from collections.abc import Container, Sequence

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import StoredHistory
from threadline.engine.folding.late_arrival import take_in
from threadline.engine.folding.packing import encode_event, log_entry, payload_digest
from threadline.engine.folding.person import Person
from threadline.engine.folding.refold import refold_person
from threadline.engine.recording.change import FULL_EVENT_BYTES, Change
from threadline.engine.recording.changes import Changes
from threadline.engine.recording.plans import EventPlan, Plans
from threadline.engine.recording.retry import Isolation
from threadline.engine.recording.validation import RecordRequest, ValidatedEvent
from threadline.engine.recording.working_set import WorkingSet
from threadline.engine.tracing import CallTrace
from threadline.kernel.event import Event, Receipt, Recorded, event_id
from threadline.kernel.limits import EVENT_TYPE_LENGTH_MAX
from threadline.kernel.operation import Refresh
from threadline.kernel.projection import State
from threadline.kernel.store import Key, Put, Store

LARGE_EVENT_BYTES = 16 * 1_024
"""An event of more bytes has the snapshot written: it may make a person too large, and is then refused itself."""


Unfilled = tuple[Refresh, frozenset[str]]
"""A `Refresh` that is not done, and those of its parts that are not filled."""


class Attempt:
    """The people, events and receipts of an attempt. Nothing is written to the store here."""

    def __init__(
        self, store: Store, catalogue: Catalogue, people: WorkingSet, now: int, plans: Plans, isolation: Isolation
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.people = people
        self.now = now
        self.plans = plans
        self.isolation = isolation
        self.changes = Changes(catalogue, people, plans)
        self.receipts: dict[int, Receipt] = {}
        self.ids: set[str] = set()
        """Ids that this attempt records, so that a call may hold the same event twice."""
        self.unsettled: set[str] = set()
        """Ids of events that wait for another attempt."""
        self.quarantined: set[Key] = set()
        """Joins that this attempt quarantines for review, each in the batch of its event."""
        self.unfilled: Sequence[Unfilled] = ()
        """What not everybody was looked at for yet; see `looking.py`."""
        self.counted: Container[str] = ()
        """The types of events that metrics count."""
        self.trace: CallTrace | None = None
        """What the attempt is timed in; None: it is not."""
        self.touched: dict[str, int] = {}
        """By id of an event of this attempt: the projections that it has touched, as bits."""

    def append(self, person: Person, thread: str, validated: ValidatedEvent, plan: EventPlan) -> Recorded:
        """Give an event the next place in a thread and fold it."""
        event, request = validated.event, validated.request
        # An event and all that policies add because of it commit together: their room is taken beforehand.
        change = self.changes.of(person, 3 + len(request.writes) + (plan.room if validated.position >= 0 else 0))
        if request.writes:
            change.take(request.writes)
        sequence = person.heads[thread] = person.heads[thread] + 1
        recorded = Recorded(event, validated.id, thread, sequence, self.now, request.cause)
        entry = log_entry(recorded, validated.encoded, validated.digest)
        change.entries.append(entry)
        if event.type in self.counted and self.catalogue.event_types.counts(event):
            change.counted.append(event)
        if (size := len(entry.body)) > LARGE_EVENT_BYTES:
            change.large += size > FULL_EVENT_BYTES
            person.tail = None
        if person.states.outdated and max(event.occurred_at, person.latest[0]) > self.now:
            # Provisional states begin with the states before this event.
            person.states.settle()
        person.pending.append(recorded)
        if person.tail is not None:
            # The next commit writes the states where a tail cannot lead to them.
            person.tail.append(bytes.fromhex(validated.id))
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
            self.touched[recorded.id] = states.touched
        else:
            values, touched = states.values, 0
            for index, fold in plan.steps:
                state = values[index]
                state = fold(states[index] if state.__class__ is msgspec.Raw else state, recorded)
                if state is not None:
                    values[index] = state
                    touched |= 1 << index
            self.touched[recorded.id] = touched
            person.latest = latest
        if plan.rows:
            change.count_rows(self.catalogue)

    def _refolded(self, person: Person, index: int) -> State:
        refold_person(self.store, self.catalogue, person, only=(index,), extra=person.pending)
        return person.states[index]

    def own(self, event: Event, cause: str) -> ValidatedEvent:
        """An event that Threadline itself makes, ready for `append_own`."""
        id = event_id(event.workspace, event.source, event.key)
        if id in self.ids or not 0 < len(event.type) <= EVENT_TYPE_LENGTH_MAX:
            raise ValueError(f"{event.source} emits {event.type[:80]!r} under a key that it has used, or too long")
        request = RecordRequest(event, cause)
        return ValidatedEvent(-1, request, event, id, payload_digest(event), encode_event(event), ())

    def append_own(self, person: Person, thread: str, validated: ValidatedEvent) -> Recorded:
        """Append an event that `own` has made."""
        self.ids.add(validated.id)
        return self.append(person, thread, validated, self.plans.of_event(validated.event))

    def history(self, person: Person) -> StoredHistory:
        """The person's events: those in the store and those of this attempt."""
        return StoredHistory(self.store, person.stored_heads(), self.catalogue.event_types.counts, person.pending)

    def undo(self, first: int, events: Sequence[ValidatedEvent]) -> None:
        """Drop the changes of a group of events, sealed since there were ``first`` of them. The events wait for another
        attempt."""
        self.people.forget(self.changes.drop(first))
        # Also people who were only read: they may have changed, which may be why nothing was to be committed.
        self.people.forget_owners(name.thread for event in events for name in event.names)
        for event in events:
            self.unsettled.add(event.id)
            self.receipts.pop(event.position, None)

    def answers(self) -> dict[int, Receipt]:
        """The settled receipts, with the survivor's id for people merged since."""
        departed, unsettled = self.people.departed, self.unsettled
        if not departed and not unsettled:
            return self.receipts
        answers = {}
        for position, receipt in self.receipts.items():
            if receipt.id in unsettled:
                continue  # a duplicate of an unsettled event is unsettled as well
            if receipt.person in departed:
                # Not read: whoever has committed something gets an answer, even if the store is away by now.
                receipt = msgspec.structs.replace(receipt, person=self.people.survivor(receipt.person))
            answers[position] = receipt
        return answers
