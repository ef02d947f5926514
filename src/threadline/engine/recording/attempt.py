"""One attempt at a call: events are appended one after the other, folded, and collected in changes to commit."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from threadline.engine.folding.catalogue import PLANS_CACHED, Catalogue
from threadline.engine.folding.history import StoredHistory
from threadline.engine.folding.late_arrival import take_in
from threadline.engine.folding.packing import encode_event, log_entry, payload_digest
from threadline.engine.folding.person import VALUE_BYTES_MAX, Person
from threadline.engine.folding.person_packing import index_rows, person_writes
from threadline.engine.folding.refold import refold_person
from threadline.engine.folding.states import NO_PROJECTIONS
from threadline.engine.recording.validation import (
    PROJECTION_FAILED,
    TOO_MANY_CHANGES,
    RecordRequest,
    UnrecordableEvents,
    ValidatedEvent,
)
from threadline.engine.recording.working_set import WorkingSet
from threadline.engine.shared import SharedValues
from threadline.engine.tracing import CallTrace
from threadline.kernel.errors import EventDamaged
from threadline.kernel.event import Event, Receipt, Recorded, event_id
from threadline.kernel.identity import MERGED
from threadline.kernel.limits import BATCH_WRITES_MAX, CASCADE_EVENTS_MAX, EVENT_TYPE_LENGTH_MAX
from threadline.kernel.operation import Refresh
from threadline.kernel.policy import Emit, Policy
from threadline.kernel.projection import Fold, Row, State
from threadline.kernel.store import Batch, Check, Delete, Key, LogEntry, Put, Store

LARGE_EVENT_BYTES = 16 * 1_024
"""An event of more bytes has the snapshot written: it may make a person too large, and is then refused itself."""
_FREE = BATCH_WRITES_MAX - 12
"""Writes of a batch without those reserved for sealing: person items, snapshots and index rows."""
FULL_EVENT_BYTES = 64 * 1_024
"""An event of more bytes counts as two: a change full of such would exceed what a batch may hold."""

Unfilled = tuple[Refresh, frozenset[str]]
"""A `Refresh` that is not done, and those of its parts that are not filled."""


class Isolation(NamedTuple):
    """Positions of requests that made an attempt void, by how they are tried from then on."""

    alone: set[int]
    """They share no batch with those after them."""
    unjoined: set[int]
    """They merge nobody: no batch could hold the merge."""


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
        """What not everybody was looked at for yet; see `look_first`."""
        self.counted: Container[str] = ()
        """The types of events that metrics count."""
        self.trace: CallTrace | None = None
        """What the attempt is timed in; None: it is not."""
        self.folded: dict[str, tuple[EventPlan, int]] = {}
        """By id of an event of this attempt: its plan, and the projections that it has touched, as bits."""

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
        if event.type in self.counted and event.type == plan.type:
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
        self.folded[validated.id] = plan, self._fold(person, recorded, plan, change) if plan.steps else 0
        return recorded

    def _fold(self, person: Person, recorded: Recorded, plan: EventPlan, change: Change) -> int:
        """Fold an event into the states of its person; returns the projections that it has touched, as bits."""
        if plan.rows:
            change.note_rows(person, self.catalogue, plan.rows)
        states, at = person.states, recorded.event.occurred_at
        latest = (at, recorded.id)
        if latest < person.latest or at > self.now or person.provisional is not None or states.outdated:
            # Late, or ahead of the clock.
            if not take_in(self, person, recorded, plan.steps, self.now, self._refolded):
                person.tail = None
            touched = states.touched
        else:
            values, touched = states.unpacked(plan.steps), 0
            for index, fold in plan.steps:
                state = fold(values[index], recorded)
                if state is not None:
                    values[index] = state
                    touched |= 1 << index
            person.latest = latest
        if plan.rows:
            change.count_rows(self.catalogue)
        return touched

    def _refolded(self, person: Person, index: int) -> State:
        refold_person(self.store, self.catalogue, person, only=(index,), extra=person.pending)
        return person.states[index]

    def own(self, event: Event, cause: str) -> OwnEvent:
        """An event that Threadline itself makes, ready for `append_own`."""
        id = event_id(event.workspace, event.source, event.key)
        if id in self.ids or not 0 < len(event.type) <= EVENT_TYPE_LENGTH_MAX:
            raise ValueError(f"{event.source} emits {event.type[:80]!r} under a key that it has used, or too long")
        request = RecordRequest(event, cause)
        # Threadline may say everything.
        validated = ValidatedEvent(-1, request, event, event.type, id, payload_digest(event), encode_event(event), ())
        return OwnEvent(validated, self.plans.of(event.workspace, event.type))

    def append_own(self, person: Person, thread: str, own: OwnEvent) -> Recorded:
        """Append an event that `own` has made."""
        self.ids.add(own.validated.id)
        return self.append(person, thread, own.validated, own.plan)

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


class Changes:
    """Decides which batch a write is in. Nothing is written to the store here."""

    def __init__(self, catalogue: Catalogue, people: WorkingSet, plans: Plans) -> None:
        self._catalogue = catalogue
        self._people = people
        self._plans = plans
        self.position = -1
        """Position of the request at work: every change that it touches decides on it."""
        self.sealed: list[tuple[Change, Batch]] = []
        """In the order in which they must commit."""
        self._loose: dict[Key, Sequence[Put | Delete]] = {}
        """Writes that belong to no person, such as the row of a new source: each of these a batch, by its first key."""
        self._open: dict[str, Change] = {}
        """The open change of each person, by person id."""
        self._sealed_last: dict[str, int] = {}
        """Person id -> the index of the last batch that was sealed with this person in it."""

    def of(self, person: Person, room: int = 0) -> Change:
        """The person's open change with room for so many more writes; a full one is sealed first."""
        change = self._open.get(person.id)
        if change is not None and change.free < room:
            self.seal(change, interim=True)
            change = None
        if change is None:
            change = self._open[person.id] = Change(person)
            if person.unwritten:
                change.note_rows(person, self._catalogue, person.unwritten)
                change.count_rows(self._catalogue)
                person.unwritten = NO_PROJECTIONS
            self._people.touched[person.id] = person
        if self.position >= 0 and (not change.requests or change.requests[-1] != self.position):
            change.requests.append(self.position)
        return change

    def share(self, change: Change, person: Person) -> None:
        """Add a person to a change of another: they commit together."""
        change.add(person)
        self._people.touched[person.id], self._open[person.id] = person, change

    def joined(self, survivor: Person, merged: Person) -> Change:
        """One change for two people who are being merged, with room for the merge."""
        change, further = self.of(survivor), self.of(merged)
        room = 2 * len(merged.heads) + 9 + self._plans.of(survivor.workspace, MERGED).room
        if change is not further and change.free < further.size + len(further.rows_to_write) + room:
            self.seal(change)
            self.seal(further)
            change, further = self.of(survivor), self.of(merged)
        if change is not further:
            change.absorb(further)
            for id in further.ids:
                self._open[id] = change
        return change

    def seal(self, change: Change, *, interim: bool = False) -> None:
        """Make a batch of a change: nothing is added to it any more. ``interim``: another one of the same people comes.

        Raises `UnrecordableEvents` for what no batch can hold.
        """
        try:
            batch = change.seal(self._catalogue, interim=interim)
        except EventDamaged as error:
            raise UnrecordableEvents(change.requests, error.code, str(error)) from error
        except Exception as error:
            raise UnrecordableEvents(change.requests, PROJECTION_FAILED, f"{type(error).__name__}: {error}") from error
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

    def seal_open(self) -> None:
        """Seal every open change."""
        while self._open:
            self.seal(next(iter(self._open.values())))

    def drop(self, first: int) -> set[str]:
        """Drop the open changes and those sealed since `sealed` had ``first``; returns the ids of their people."""
        sealed = self.sealed[first:]
        for change, _ in sealed:
            for id in change.ids:
                self._sealed_last.pop(id, None)
        changes = [*(change for change, _ in sealed), *self._open.values()]
        del self.sealed[first:]
        self._open.clear()
        return {id for change in changes for id in change.ids}

    def commit_apart(self, writes: Sequence[Put | Delete]) -> None:
        """Commit these together, in a batch that touches no person."""
        if writes:
            self._loose[writes[0].key] = writes

    def batches(self) -> list[Batch]:
        """All batches, in the order in which they must commit."""
        return [batch for _, batch in self.sealed] + [Batch(writes=writes) for writes in self._loose.values()]


class Change:
    """Collects events and writes until it is sealed into a `Batch`."""

    __slots__ = ("checks", "counted", "entries", "failures", "ids", "large", "people", "requests", "rows_before",
                 "rows_of", "rows_to_write", "writes")  # fmt: skip

    def __init__(self, person: Person) -> None:
        self.people: dict[str, Person] = {person.id: person}
        self.ids: set[str] = {person.id}
        """The people of this change, with those merged away in it."""
        self.entries: list[LogEntry] = []
        self.counted: list[Event] = []
        """Those of these events that metrics count once they are committed."""
        self.failures: list[tuple[str, Emit, Exception]] = []
        """Policies that raised about events of this change (id of the event, what says so, error), logged once it is
        committed."""
        self.large = 0
        """How many events are so large that they count twice."""
        self.writes: dict[Key, Put | Delete] = {}
        self.checks: dict[Key, Check] = {}
        self.requests: list[int] = []
        """Positions of the requests that are decided by this batch."""
        self.rows_before: dict[Key, bytes] = {}
        self.rows_of: dict[str, set[int]] = {}
        """Person id -> the projections whose rows may change."""
        self.rows_to_write: list[Put | Delete] = []
        """Index rows to be written or removed so far."""

    @property
    def size(self) -> int:
        """Writes so far, as the store counts them, and two more for every large event."""
        return 2 * (len(self.entries) + self.large) + len(self.writes) + len(self.checks) + len(self.people)

    @property
    def free(self) -> int:
        """How many more writes fit beside those that sealing may add."""
        return _FREE - (
            2 * (len(self.entries) + self.large)
            + len(self.writes) + len(self.checks) + len(self.people) + len(self.rows_to_write)
        )  # fmt: skip

    def take(self, writes: Iterable[Put | Delete | Check]) -> None:
        """Commit these with the rest."""
        for write in writes:
            if isinstance(write, Check):
                self.checks[write.key] = write
            else:
                self.writes[write.key] = write

    def add(self, person: Person) -> None:
        """Add a person to be written."""
        self.people[person.id] = person
        self.ids.add(person.id)

    def absorb(self, other: Change) -> None:
        """Take over another change: two people who are merged commit as one."""
        self.people.update(other.people)
        self.ids |= other.ids
        self.entries += other.entries
        self.counted += other.counted
        self.failures += other.failures
        self.large += other.large
        self.writes.update(other.writes)
        self.checks.update(other.checks)
        self.requests += other.requests
        self.rows_before.update(other.rows_before)
        self.rows_of.update(other.rows_of)
        self.rows_to_write += other.rows_to_write

    def note_rows(self, person: Person, catalogue: Catalogue, only: Iterable[int] | None = None) -> None:
        """Note a person's index rows as stored; call before the first change to them.

        ``only`` are the projections whose rows may change; by default all that have rows.
        """
        noted = self.rows_of.setdefault(person.id, set())
        new = [index for index in (catalogue.with_rows if only is None else only) if index not in noted]
        if new:
            noted.update(new)
            self.rows_before.update(index_rows(person, catalogue, [i for i in new if i not in person.unwritten]))

    def count_rows(self, catalogue: Catalogue) -> None:
        """Compute the rows that differ; call after each change of the states that rows come from."""
        after: dict[Key, bytes] = {}
        for id, noted in self.rows_of.items():
            if id in self.people:
                after.update(index_rows(self.people[id], catalogue, noted))
        changed: list[Put | Delete] = [Put(k, v) for k, v in after.items() if self.rows_before.get(k) != v]
        self.rows_to_write = changed + [Delete(k) for k in self.rows_before if k not in after]

    def seal(self, catalogue: Catalogue, *, interim: bool = False) -> Batch:
        """The batch: events, changed rows, and each person under the expected version."""
        people = self.people.values()
        states = [put for person in people for put in person_writes(person, catalogue, interim=interim)]
        return Batch(self.entries, [*states, *self.writes.values(), *self.checks.values(), *self.rows_to_write])


class EventPlan(NamedTuple):
    """Folds, rows and policies of one event type in one workspace."""

    type: str
    """The type as which its events count."""
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


class OwnEvent(NamedTuple):
    """An event that Threadline itself makes."""

    validated: ValidatedEvent
    plan: EventPlan


class Plans:
    """The plans of one catalogue. Not thread-safe: used under the recorder's lock."""

    def __init__(self, catalogue: Catalogue, values: SharedValues) -> None:
        self._catalogue = catalogue
        self._values = values
        self._names = tuple({p.shared.name: None for p in catalogue.policies if p.shared is not None})
        self._shared: dict[str, dict[str, Any]] = {}
        self._plans: dict[str, dict[str, EventPlan]] = {}
        self._editions: dict[str, int] = {}
        """Of all values, when those of a workspace were read last."""

    def refresh(self, workspaces: Iterable[str]) -> None:
        """Read the shared values of these workspaces. Called before the clock is read, so that the values that decide
        about an event were in force by its time."""
        edition = self._values.edition
        lasting = self._values.refresh_seconds is None
        for workspace in workspaces:
            known = self._shared.get(workspace)
            if lasting and self._editions.get(workspace) == edition:
                continue
            shared: dict[str, Any] = {}
            changed = known is None
            for name in self._names:
                value = shared[name] = self._values.current(workspace, name)
                changed = known is None or changed or value is not known[name]
            if changed:
                if len(self._shared) >= PLANS_CACHED:
                    self._shared.clear()
                    self._plans.clear()
                    self._editions.clear()
                self._shared[workspace], self._plans[workspace] = shared, {}
            self._editions[workspace] = edition

    def of(self, workspace: str, event_type: str) -> EventPlan:
        """The plan of the events that count as a type."""
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
        return EventPlan(event_type, plan.steps, plan.rows, plan.marks, policies, reads, awaits, room)

    def _reads(self, policy: Policy) -> int:
        return sum({1 << self._catalogue.index[read.projection] for read in policy.reads})

    def shared(self, workspace: str, name: str) -> Any:
        """The value of a policy's `Shared`, the same for a whole attempt."""
        return self._shared[workspace][name]

    def handled(self, workspace: str, event_type: str) -> bool:
        """Whether a policy names events of this type."""
        return any(policy.names_types for policy in self.of(workspace, event_type).policies)
