"""One attempt at a group of events: what they change and what follows from them, until it is sealed in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from threadline.engine import instants, wishes
from threadline.engine.catalogue import Catalogue
from threadline.engine.draft import Draft
from threadline.engine.history import StoredHistory
from threadline.engine.known import KnownPerson
from threadline.engine.packing import pack_body, payload_digest
from threadline.engine.people import People
from threadline.engine.person import VALUE_BYTES_MAX, Person
from threadline.engine.reactors import Reactors
from threadline.engine.refold import refold_person
from threadline.engine.screen import Care, Request, Screened
from threadline.engine.void import TOO_MANY_CHANGES, Overtaken, Poisoned
from threadline.engine.waiting import effect_id
from threadline.kernel.event import Event, Receipt, Recorded, event_id
from threadline.kernel.identity import MERGED
from threadline.kernel.limits import BATCH_WRITES_MAX, CASCADE_EVENTS_MAX, EVENT_TYPE_LENGTH_MAX
from threadline.kernel.policy import Effect, Emit, Policy, Wish, source_of
from threadline.kernel.projection import Projection, State
from threadline.kernel.store import Batch, Delete, Key, LogEntry, Put, Store


class Group:
    """Where events are placed one after the other, in drafts of batches. Nothing is written here."""

    def __init__(
        self, store: Store, catalogue: Catalogue, people: People, now: int, reactors: Reactors, care: Care
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.index = catalogue.index
        self.people = people
        self.now = now
        self.care = care
        self.receipts: dict[int, Receipt] = {}
        self.ids: set[str] = set()
        """Ids this group records, so that a call may hold the same event twice."""
        self.sealed: list[tuple[Draft, Batch]] = []
        self.sealed_last: dict[str, int] = {}
        """Person id -> the place of the last batch that was sealed with this person in it."""
        self.drafts: dict[str, Draft] = {}
        """The open draft of each person, by person id."""
        self.pending: dict[str, list[Recorded]] = {}
        """Events placed by this group, by thread: they are not in the store yet."""
        self.placed_for: dict[str, Person] = {}
        """Whose the threads of these were held to be."""
        self.put_off: set[str] = set()
        """Ids of events that wait for an attempt of their own."""
        self.aside: set[Key] = set()
        """Joins that this group sets aside for review, each in the batch of its event."""
        self.loose: dict[Key, Sequence[Put | Delete]] = {}
        """Writes that belong to no person, such as the row of a new source: each of these a batch, by its first key."""
        self.placing = -1
        """Position of the request being placed: every draft that it touches decides on it."""
        self.reactors = reactors

    # --- folding ---------------------------------------------------------------------------

    def append(self, person: Person, thread: str, one: Screened) -> Recorded:
        """Give an event the next place in a thread and fold it."""
        event, request = one.event, one.request
        self.agree_on(person)
        sequence = person.heads[thread] + 1
        recorded = Recorded(event, one.id, thread, sequence, self.now, request.cause)
        # An event and all that policies add because of it commit together: their room is taken beforehand.
        cascade = self.cascade_room(event.workspace, event.type) if one.position >= 0 else 0
        draft = self.draft(person, 3 + len(request.writes) + cascade)
        draft.take(request.writes)
        draft.entries.append(LogEntry(thread, sequence, event.occurred_at, event.type, one.id, one.digest, one.body))
        person.heads[thread] = sequence
        self.pending.setdefault(thread, []).append(recorded)
        self.placed_for[thread] = person
        self._fold(person, recorded, draft)
        return recorded

    def emit(self, person: Person, thread: str, event: Event, cause: str) -> Recorded:
        """Append an event that Threadline itself makes."""
        id = event_id(event.workspace, event.source, event.key)
        if id in self.ids or not 0 < len(event.type) <= EVENT_TYPE_LENGTH_MAX:
            raise ValueError(f"{event.source} wishes for {event.type[:80]!r} under a key that it has used, or too long")
        self.ids.add(id)
        body = pack_body(event, self.now, cause)
        one = Screened(-1, Request(event, cause), event, id, payload_digest(event), body, ())
        return self.append(person, thread, one)

    def _fold(self, person: Person, recorded: Recorded, draft: Draft) -> None:
        event = recorded.event
        steps, rows, marks = self.catalogue.plan(event.type)
        for mark in marks:
            for row in mark(recorded):
                key = Key(row.table, row.partition, row.sort)
                draft.writes[key] = Put(key, row.value or b"\x00")
        if not steps:
            return
        if rows:
            draft.note_rows(person, self.catalogue, rows)
        instants.take_in(self, person, recorded, steps, self.now, self._refolded)
        if rows:
            draft.count_rows(self.catalogue)

    def _refolded(self, person: Person, index: int) -> State:
        refold_person(self.store, self.catalogue, person, only=(index,), extra=self.pending_of(person))
        return person.states[index]

    def history(self, person: Person) -> StoredHistory:
        """The person's events: those in the store and those that this group has placed."""
        return StoredHistory(self.store, self.stored_heads(person), self.pending_of(person))

    def pending_of(self, person: Person) -> list[Recorded]:
        """This group's events of a person: those that are not in the store yet."""
        self.agree_on(person)
        return [recorded for thread in person.heads for recorded in self.pending.get(thread, ())]

    def agree_on(self, person: Person) -> None:
        """Raise `Overtaken` where events of this person were placed for somebody else, as one of the two was."""
        for held in {self.placed_for.get(thread, person) for thread in person.heads} - {person}:
            self.people.touched.update({person.id: person, held.id: held})  # neither is believed at the next attempt
            raise Overtaken(f"threads of person {person.id} were held to be of {held.id}")

    def stored_heads(self, person: Person) -> dict[str, int]:
        """The heads of a person's threads as far as they are in the store."""
        return {thread: head - len(self.pending.get(thread, ())) for thread, head in person.heads.items()}

    def cascade_room(self, workspace: str, event_type: str) -> int:
        """Writes to keep free for what policies may add because of an event of this type."""
        return 2 * CASCADE_EVENTS_MAX if self.reactors.of(workspace, event_type) else 0

    # --- where policies react --------------------------------------------------------------

    def reacting(self, event: Event) -> tuple[Policy, ...]:
        """The policies that want to see an event."""
        return self.reactors.of(event.workspace, event.type)

    def known(self, person: Person, recorded: Recorded) -> KnownPerson:
        """A person right after an event, as policies see them."""
        # An event from a clock that runs ahead is no later for what is decided because of it.
        at = max(recorded.recorded_at, recorded.event.occurred_at) + 1
        return KnownPerson(self, person, recorded.event.type, at)

    def idle(self, person: Person, policy: str, wish: Wish) -> bool:
        """Whether a wish is for a timer that stays as it is."""
        return wishes.is_idle(person, policy, wish)

    def free(self, person: Person) -> int:
        """How many more writes fit into the batch that the person's events are in."""
        return self.drafts[person.id].free

    def grant(self, person: Person, cause: Recorded, policy: str, wish: Wish) -> Recorded | None:
        """Carry a wish into the person's draft; the recorded event if it was for one."""
        if isinstance(wish, Emit):
            event = wishes.event_of(person, cause.thread, source_of(policy), cause.id, wish, self.now)
            return self.emit(person, cause.thread, event, cause.id)
        writes: Iterable[Put | Delete]
        if isinstance(wish, Effect):
            id = effect_id(policy, cause.id, wish.key)
            if id in self.ids:
                raise ValueError(f"policy {policy} wishes for two effects under the key {wish.key!r}")
            self.ids.add(id)
            writes = [wishes.effect_put(self.catalogue, person, cause, policy, wish, id)]
        else:
            writes = wishes.timer_writes(person, cause.thread, policy, wish)
        for write in writes:
            self.draft(person, 1).writes[write.key] = write
        return None

    def cut(self, person: Person, cause: Recorded, policy: str) -> None:
        """Put in the thread that a cascade was cut at its limit, and by whom."""
        self.grant(person, cause, policy, wishes.cut(policy, self.now))

    def look(self, index: int) -> Projection:
        """How a projection is looked at: whole."""
        return self.catalogue.projections[index]

    def heeded(self, workspace: str, type: str) -> bool:
        """Whether a policy names events of this type."""
        return self.reactors.heeded(workspace, type)

    def shared(self, workspace: str, name: str) -> Any:
        """The value of a policy's `Shared`."""
        return self.reactors.shared(workspace, name)

    # --- drafts ----------------------------------------------------------------------------

    def draft(self, person: Person, room: int = 0) -> Draft:
        """The person's open draft with room for so many more writes; a full one is sealed first."""
        draft = self.drafts.get(person.id)
        if draft is not None and not draft.has_room(room):
            self.seal(draft)
            draft = None
        if draft is None:
            draft = self.drafts[person.id] = Draft()
            draft.add(person)
            if person.unwritten:
                draft.note_rows(person, self.catalogue, person.unwritten)
                draft.count_rows(self.catalogue)
                person.unwritten = frozenset()
            self.people.touched[person.id] = person
        if self.placing >= 0 and (not draft.requests or draft.requests[-1] != self.placing):
            draft.requests.append(self.placing)
        return draft

    def join_drafts(self, survivor: Person, merged: Person) -> Draft:
        """One draft for two people who are being joined; it has room for the joining."""
        one, other = self.draft(survivor), self.draft(merged)
        room = 2 * len(merged.heads) + 8 + self.cascade_room(survivor.workspace, MERGED)
        if one is not other and not one.has_room(other.size + len(other.rows_to_write) + room):
            self.seal(one)
            self.seal(other)
            one, other = self.draft(survivor), self.draft(merged)
        if one is not other:
            one.absorb(other)
            for id in other.ids:
                self.drafts[id] = one
        return one

    def seal(self, draft: Draft) -> None:
        """Make a batch of a draft: nothing is added to it any more. Raises `Poisoned` for what no batch can hold."""
        try:
            batch = draft.seal(self.catalogue)
        except Exception as error:
            raise Poisoned(draft.requests, "projection_failed", f"{type(error).__name__}: {error}") from error
        if any(len(write.value) > VALUE_BYTES_MAX for write in batch.writes if isinstance(write, Put)):
            message = f"what is known of the person would exceed {VALUE_BYTES_MAX} bytes"
            raise Poisoned(draft.requests, "person_too_large", message)
        if 2 * len(batch.events) + len(batch.writes) > BATCH_WRITES_MAX:
            message = f"it would change more than {BATCH_WRITES_MAX} items at once; tags and groups count one each"
            raise Poisoned(draft.requests, TOO_MANY_CHANGES, message)
        before = {self.sealed_last[id] for id in draft.ids if id in self.sealed_last}
        self.sealed.append((draft, batch._replace(builds_on=sorted(before))))
        for id in draft.ids:
            self.sealed_last[id] = len(self.sealed) - 1
            self.drafts.pop(id, None)

    def seal_all(self, between: Callable[[], None] = lambda: None) -> list[Batch]:
        """Seal what is still open, ``between`` before each; all batches, in the order in which they must commit."""
        for draft in list({id(d): d for d in self.drafts.values()}.values()):
            between()
            self.seal(draft)
        return [batch for _, batch in self.sealed] + [Batch(writes=writes) for writes in self.loose.values()]

    def answers(self) -> dict[int, Receipt]:
        """The receipts that are left; people who were merged meanwhile under the survivor's id."""
        departed = self.people.departed
        if not departed:
            return self.receipts
        named = {}
        for index, receipt in self.receipts.items():
            if receipt.person in departed:
                receipt = msgspec.structs.replace(receipt, person=self.people.person(receipt.person).id)
            named[index] = receipt
        return named

    def commit_apart(self, writes: Sequence[Put | Delete]) -> None:
        """Commit these together, in a batch that has nothing to do with anybody."""
        if writes:
            self.loose[writes[0].key] = writes

    def dissolve(self, between: Callable[[], None]) -> None:
        """Let go of everything person by person: at once it would hold the interpreter for milliseconds."""
        while self.sealed:
            self.sealed.pop()
        for held in (self.drafts, self.pending, self.people.touched, self.people.read):
            while held:
                between()
                held.popitem()
