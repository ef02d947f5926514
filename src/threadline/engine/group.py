"""One attempt to place a group of events: whose they are, what they change, what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from threadline.engine import instants, wishes
from threadline.engine.catalogue import Catalogue
from threadline.engine.draft import Draft
from threadline.engine.history import StoredHistory
from threadline.engine.known import KnownPerson
from threadline.engine.memo import Memo
from threadline.engine.packing import pack_body, payload_digest
from threadline.engine.person import VALUE_BYTES_MAX, Packed, Person, person_key, thread_key, unpack_person
from threadline.engine.reactors import Reactors
from threadline.engine.refold import refold_person
from threadline.engine.screen import Care, Request, Screened
from threadline.engine.waiting import effect_id
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.event import Event, Receipt, Recorded, event_id
from threadline.kernel.identity import MERGED
from threadline.kernel.limits import BATCH_WRITES_MAX, CASCADE_EVENTS_MAX, EVENT_TYPE_LENGTH_MAX
from threadline.kernel.policy import Effect, Emit, Policy, Wish, source_of
from threadline.kernel.projection import Projection, State
from threadline.kernel.store import Batch, Delete, Item, Key, LogEntry, Put, Store

TOO_MANY_CHANGES = "too_many_changes"
"""Code of an event whose consequences no batch can hold."""


class Poisoned(Exception):
    """Some events cannot be taken; the attempt is void and is made again without them."""

    def __init__(self, indices: Sequence[int], code: str, message: str) -> None:
        super().__init__(message)
        self.indices = indices
        self.code = code


class Overtaken(Exception):
    """Another process has changed what this attempt was built on; it is void and is made again."""


class Group:
    """Where events are placed one after the other, in drafts of batches. Nothing is written here."""

    def __init__(
        self, store: Store, catalogue: Catalogue, people: Memo[str, Packed], owners: Memo[str, str], now: int,
        reactors: Reactors, care: Care,
    ) -> None:  # fmt: skip
        self.store = store
        self.catalogue = catalogue
        self.index = catalogue.index
        self.people = people
        self.owners = owners
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
        self.placed_for: dict[str, Person] = {}  # whose the threads of these were held to be
        self.read: dict[str, Person] = {}  # people as unpacked for this group
        self.touched: dict[str, Person] = {}  # people whom this group changes
        self.absent: set[str] = set()  # threads that are nobody's in the store
        self.claimed: list[str] = []  # threads whose owner this group has changed in the cache
        self.departed: dict[str, Person] = {}  # those who were merged away, and into whom
        self.put_off: set[str] = set()
        """Ids of events that wait for an attempt of their own."""
        self.loose: dict[Key, Put | Delete] = {}
        """Writes that belong to no person, such as what is set aside for review."""
        self.placing = -1
        """Position of the request being placed: every draft that it touches decides on it."""
        self.reactors = reactors

    # --- reading ---------------------------------------------------------------------------

    def prefetch(self, screened: Sequence[Screened]) -> None:
        """Read every thread and person that these events need, in two fat reads."""
        missing: dict[str, None] = {}
        wanted: dict[str, None] = {}
        for one in screened:
            for named in one.named:
                owner = self.owners.get(named.thread)
                if owner is None:
                    missing[named.thread] = None
                elif self.people.get(owner) is None:
                    wanted[owner] = None
        threads = list(missing)
        for thread, item in zip(threads, self.store.get([thread_key(t) for t in threads]), strict=True):
            if item is None:
                self.absent.add(thread)
                continue
            owner = item.value.decode()
            self.owners.put(thread, owner)
            if self.people.get(owner) is None:
                wanted[owner] = None
        ids = list(wanted)
        for item in self.store.get([person_key(p) for p in ids]):
            if item is not None:
                self.people.put(item.key.partition, (item.version, item.value))

    def owner(self, thread: str) -> Person | None:
        """The person a thread belongs to, or None on first contact."""
        owner = self.owners.get(thread)
        if owner is not None:
            person = self._living(owner)
            if person is not None and thread in person.heads:
                return person
            # Another process has merged or split since this was cached: ask the store whose the thread is now.
            self.owners.forget(thread)
        elif thread in self.absent:
            return None
        item = self.store.get([thread_key(thread)])[0]
        if item is None:
            return None
        owner = item.value.decode()
        self.owners.put(thread, owner)
        person = self._living(owner)
        if person is None or thread not in person.heads:
            self.people.forget(owner)
            raise Overtaken(f"thread {thread} is newer than what is cached of person {owner}")
        return person

    def person(self, id: str) -> Person:
        """The living person of an id; the group's own changes included."""
        person = self._living(id)
        if person is None:
            raise StoreDamaged(f"person {id} is named as an owner but is not there")
        return person

    def _living(self, id: str) -> Person | None:
        while id in self.departed:
            id = self.departed[id].id
        found = self.touched.get(id) or self.read.get(id)
        if found is not None:
            return found
        key, packed = person_key(id), self.people.get(id)
        item = self.store.get([key])[0] if packed is None else Item(key, *packed)
        person = None if item is None else unpack_person(item, self.catalogue)
        if not isinstance(person, Person):
            self.people.forget(id)
            return None
        self.read[id] = self._fresh(person)
        return person

    def _fresh(self, person: Person) -> Person:
        if person.stale:
            # Definitions changed since this state was written: catch it up before anything is added to it.
            refold_person(self.store, self.catalogue, person, only=person.stale)
            person.unwritten = frozenset(person.stale) & frozenset(self.catalogue.with_rows)
            person.stale = ()
        return person

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
            self.touched.update({person.id: person, held.id: held})  # neither is believed at the next attempt
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
            self.touched[person.id] = person
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
        return [batch for _, batch in self.sealed] + [Batch(writes=[write]) for write in self.loose.values()]

    def answers(self) -> dict[int, Receipt]:
        """The receipts that are left; people who were merged meanwhile under the survivor's id."""
        if not self.departed:
            return self.receipts
        named = {}
        for index, receipt in self.receipts.items():
            if receipt.person in self.departed:
                receipt = msgspec.structs.replace(receipt, person=self.person(receipt.person).id)
            named[index] = receipt
        return named

    def forget(self) -> None:
        """Drop from the caches whatever this group has changed: it was not committed."""
        for id in self.touched:
            self.people.forget(id)
        for thread in self.claimed:
            self.owners.forget(thread)

    def dissolve(self, between: Callable[[], None]) -> None:
        """Let go of everything person by person: at once it would hold the interpreter for milliseconds."""
        while self.sealed:
            self.sealed.pop()
        for held in (self.drafts, self.pending, self.touched, self.read):
            while held:
                between()
                held.popitem()

    def keep(self) -> None:
        """Everything was committed: let the caches hold it."""
        for id, person in self.touched.items():
            if id in self.departed:
                self.people.forget(id)
            else:
                self.people.put(id, (person.version, person.packed))
