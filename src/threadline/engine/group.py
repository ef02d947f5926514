"""One attempt to place a group of events: whose they are, what they change, what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import msgspec

from threadline.engine import ahead, identity, wishes
from threadline.engine.cascade import Reactors, cascade
from threadline.engine.catalogue import Catalogue
from threadline.engine.draft import Draft
from threadline.engine.known import KnownPerson
from threadline.engine.memo import Memo
from threadline.engine.packing import pack_body, payload_digest
from threadline.engine.person import VALUE_BYTES_MAX, Packed, Person, person_key, thread_key, unpack_person
from threadline.engine.refold import refold_person
from threadline.engine.screen import Request, Screened
from threadline.kernel.errors import Conflict, StoreDamaged, ThreadlineError
from threadline.kernel.event import Event, Receipt, Recorded, event_id
from threadline.kernel.identity import MERGED
from threadline.kernel.limits import (
    BATCH_WRITES_MAX,
    CASCADE_EVENTS_MAX,
    EVENT_TYPE_LENGTH_MAX,
)
from threadline.kernel.policy import TIMER_FIRED
from threadline.kernel.store import Batch, Check, Delete, Item, Key, LogEntry, Put, Store


class Poisoned(Exception):
    """Some events cannot be taken; the attempt is void and is made again without them."""

    def __init__(self, indices: Sequence[int], code: str, message: str) -> None:
        super().__init__(message)
        self.indices = indices
        self.code = code


class Overtaken(Exception):
    """Another process has changed what this attempt was built on; it is void and is made again."""


class Group:
    """Places events one after the other into drafts. Nothing is written before `seal`."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        people: Memo[str, Packed],
        owners: Memo[str, str],
        now: int,
        reactors: Reactors,
        alone: Set[int] = frozenset(),
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.people = people
        self.owners = owners
        self.now = now
        self.alone = alone
        """Positions of requests that share no batch with those after them, because something in theirs was unfit."""
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
        self.read: dict[str, Person] = {}
        """People as unpacked for this group."""
        self.touched: dict[str, Person] = {}
        """People whom this group changes."""
        self.absent: set[str] = set()
        """Threads that are nobody's in the store."""
        self.claimed: list[str] = []
        """Threads whose owner this group has changed in the cache."""
        self.departed: dict[str, Person] = {}
        """Those who were merged away, and into whom."""
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

    # --- placing ---------------------------------------------------------------------------

    def place(self, one: Screened) -> None:
        """Record one event: resolve its person, append, fold, and let policies react."""
        event = one.event
        expected = one.request.expected
        self.placing = one.position
        try:
            person, thread = identity.resolve(self, event.workspace, one.named, one.id)
            if expected is not None and expected != person.position:
                # Void, not only rejected: finding the person may have created, linked or joined people already.
                message = f"expected position {expected}, the person is at {person.position}; read and decide again"
                raise Poisoned([one.position], "position_conflict", message)
            if event.type == TIMER_FIRED:
                wishes.note_fired(person, thread, event)
            recorded = self.append(person, thread, one)
            cascade(self, person, recorded)
        except Poisoned as poison:
            raise poison if poison.indices else Poisoned([one.position], poison.code, str(poison)) from poison
        except Conflict as error:
            # What an event brings about bears its id: another process has recorded it since this attempt looked.
            raise Overtaken(f"event {one.id} has joined two people already") from error
        except (ThreadlineError, Overtaken):
            raise
        except Exception as error:
            raise Poisoned([one.position], "projection_failed", f"{type(error).__name__}: {error}") from error
        if one.position in self.alone:
            self._seal(self.draft(person))
        self.receipts[one.position] = Receipt(
            status="accepted", id=one.id, person=person.id, thread=thread, sequence=recorded.sequence
        )

    def fold_only(self, one: Screened) -> tuple[Recorded, KnownPerson]:
        """An event in its place, and its person right after it, for who only wants to look. Policies are not asked."""
        person, thread = identity.resolve(self, one.event.workspace, one.named, one.id)
        recorded = self.append(person, thread, one)
        return recorded, KnownPerson(self, person, recorded)

    def append(self, person: Person, thread: str, one: Screened) -> Recorded:
        """Give an event the next place in a thread and fold it."""
        event, request = one.event, one.request
        sequence = person.heads[thread] + 1
        recorded = Recorded(event, one.id, thread, sequence, self.now, request.cause)
        # An event and all that policies add because of it commit together: their room is taken beforehand.
        told = one.position >= 0  # by a producer; what policies add has its room already
        cascade = self.cascade_room(event.workspace, event.type) if told else 0
        draft = self.draft(person, 3 + len(request.writes) + cascade)
        for write in request.writes:
            if isinstance(write, Check):
                draft.checks[write.key] = write
            else:
                draft.writes[write.key] = write
        draft.entries.append(LogEntry(thread, sequence, event.occurred_at, event.type, one.id, one.digest, one.body))
        person.heads[thread] = sequence
        self.pending.setdefault(thread, []).append(recorded)
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
        steps, rows, ordered, marks = self.catalogue.plan(event.type)
        for mark in marks:
            for row in mark(recorded):
                key = Key(row.table, row.partition, row.sort)
                draft.writes[key] = Put(key, row.value or b"\x00")
        if not steps:
            return
        latest = (event.occurred_at, recorded.id)
        late = latest < person.latest
        if rows:
            draft.note_rows(person, self.catalogue, rows)
        if person.latest[0] > self.now or event.occurred_at > self.now:
            ahead.keep_up(self, person, recorded)
        else:
            person.meanwhile = None
        states = person.states
        for index, fold in steps:
            if late and index in ordered and not states.folds_in_place(index, recorded):
                self._refold_ordered(person, index)
            else:
                states.fold(index, fold, recorded)
        if rows:
            draft.count_rows(self.catalogue)
        if not late:
            person.latest = latest

    def _refold_ordered(self, person: Person, index: int) -> None:
        refold_person(self.store, self.catalogue, person, only=(index,), extra=self.pending_of(person))

    def pending_of(self, person: Person) -> list[Recorded]:
        """This group's events of a person: those that are not in the store yet."""
        return [recorded for thread in person.heads for recorded in self.pending.get(thread, ())]

    def stored_heads(self, person: Person) -> dict[str, int]:
        """The heads of a person's threads as far as they are in the store."""
        return {thread: head - len(self.pending.get(thread, ())) for thread, head in person.heads.items()}

    def cascade_room(self, workspace: str, event_type: str) -> int:
        """Writes to keep free for what policies may add because of an event of this type."""
        return 2 * CASCADE_EVENTS_MAX if self.reactors.of(workspace, event_type) else 0

    # --- drafts ----------------------------------------------------------------------------

    def draft(self, person: Person, room: int = 0) -> Draft:
        """The person's open draft with room for so many more writes; a full one is sealed first."""
        draft = self.drafts.get(person.id)
        if draft is not None and not draft.has_room(room):
            self._seal(draft)
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
            self._seal(one)
            self._seal(other)
            one, other = self.draft(survivor), self.draft(merged)
        if one is not other:
            one.absorb(other)
            for id in other.ids:
                self.drafts[id] = one
        return one

    def _seal(self, draft: Draft) -> None:
        try:
            batch = draft.seal(self.catalogue)
        except Exception as error:
            raise Poisoned(draft.requests, "projection_failed", f"{type(error).__name__}: {error}") from error
        if any(len(write.value) > VALUE_BYTES_MAX for write in batch.writes if isinstance(write, Put)):
            message = f"what is known of the person would exceed {VALUE_BYTES_MAX} bytes"
            raise Poisoned(draft.requests, "person_too_large", message)
        if 2 * len(batch.events) + len(batch.writes) > BATCH_WRITES_MAX:
            message = f"it would change more than {BATCH_WRITES_MAX} items at once; tags and groups count one each"
            raise Poisoned(draft.requests, "too_many_changes", message)
        before = {self.sealed_last[id] for id in draft.ids if id in self.sealed_last}
        self.sealed.append((draft, batch._replace(builds_on=sorted(before))))
        for id in draft.ids:
            self.sealed_last[id] = len(self.sealed) - 1
            self.drafts.pop(id, None)

    def seal_all(self, between: Callable[[], None] = lambda: None) -> list[Batch]:
        """Seal what is still open and answer all batches, in the order in which they must commit.

        ``between`` is called before each is sealed.
        """
        for draft in list({id(d): d for d in self.drafts.values()}.values()):
            between()
            self._seal(draft)
        batches = [batch for _, batch in self.sealed]
        loose = list(self.loose.values())
        return batches + [Batch(writes=[write]) for write in loose]

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
