"""The one read path: a person, their events and their views at an instant, all at one position of the log."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import StoredHistory, occurred_order, ties_sorted
from threadline.engine.folding.packing import checked_event
from threadline.engine.folding.person import PERSON, Person, own
from threadline.engine.folding.person_packing import people_of
from threadline.engine.folding.person_view import AsKnownPersonView, FoldedPersonView, states_at, view_at
from threadline.engine.folding.refold import folded_before
from threadline.engine.interpreter import gc_deferred
from threadline.engine.reading.identity_history import IdentityHistory
from threadline.engine.reading.lookup import Lookup
from threadline.engine.scheduled import pending_timers
from threadline.kernel import ports
from threadline.kernel.errors import BeingErased, EventDamaged, InvalidValue, NotFound, StoreDamaged
from threadline.kernel.event import Recorded, identifier_named, is_thread_id
from threadline.kernel.limits import EVENTS_PAGE_MAX
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Cursor
from threadline.kernel.projection import Look, State
from threadline.kernel.store import Key, LogEntry, Span, Store, following_pages

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


class PersonReader:
    """Reads people. Every answer comes from what is committed; ``recent`` spares reading events again, see `Lookup`."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        recent: Callable[[str], Recorded | None] | None = None,
        note_damage: Callable[[EventDamaged], None] = lambda error: None,
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.lookup = Lookup(store, catalogue, recent)
        self.note_damage = note_damage
        """What is called with each damaged event that a page of events would hold."""

    def person(self, workspace: str, ref: str, *, known_at: int | None = None) -> Person:
        """The person meant by ``ref``: a user id, ``kind:value``, or a person's id (of a merged one: the survivor).

        With ``known_at``, the person meant at that instant, before later joins and splits: their threads alone, for
        views of that time. Raises `NotFound`, also for people of other workspaces.
        """
        if known_at is not None:
            return self.identity_history(workspace, ref).at(known_at)
        return self._meant(workspace, ref)[0]

    def identity_history(self, workspace: str, ref: str) -> IdentityHistory:
        """Who the person meant by ``ref`` was at one instant and another; raises `NotFound`."""
        person, thread = self._meant(workspace, ref)
        return IdentityHistory(self.store, self.catalogue, self.lookup, person, thread, named=thread != ref)

    def _meant(self, workspace: str, ref: str) -> tuple[Person, str]:
        """A person, and which of their threads was named."""
        # A person's id is that of the thread that founded it.
        person = self.by_id(ref) if is_thread_id(ref) else None
        if person is not None and person.workspace == workspace:
            return person, ref
        for thread in self.catalogue.rules.threads(workspace, identifier_named(ref)):
            person = self.by_thread(thread)
            if person is not None and person.workspace == workspace:
                return person, thread
        hint = "" if ":" in ref else "This is a user id; others have their kind first, as in email:ada@example.com."
        raise NotFound(f"nobody is known as {ref!r} in workspace {workspace!r}", hint=hint)

    def by_thread(self, thread: str) -> Person | None:
        """The person a thread belongs to; None if there is none."""
        return self.lookup.by_thread(thread)

    def by_threads(self, threads: Sequence[str]) -> dict[str, Person]:
        """By thread, the people that some threads belong to, read together."""
        return self.lookup.by_threads(threads)

    def person_of(self, recorded: Recorded) -> Person:
        """The person in whose thread an event is."""
        person = self.by_thread(recorded.thread)
        if person is None:
            if self.lookup.erasure_of(recorded.thread) or recorded.id not in self.store.find([recorded.id]):
                raise BeingErased(f"the person of event {recorded.id} is being erased")
            raise StoreDamaged(f"event {recorded.id} is in the thread {recorded.thread}, which is nobody's")
        return person

    def by_id(self, id: str) -> Person | None:
        """The person of an id, through merges, with every state caught up with the definitions in force."""
        return self.lookup.by_id(id)

    def history(self, person: Person, known_at: int | None = None) -> StoredHistory:
        """The person's events in the store; with ``known_at`` those that were known by then."""
        return StoredHistory(self.store, person.heads, self.catalogue.event_types.counts, known_at=known_at)

    def states(
        self, person: Person, now: int, *, known_at: int | None = None, only: Sequence[int] | None = None
    ) -> Sequence[State]:
        """The states that hold at ``now``: the kept ones, or a fold of the log where these include later events.

        ``only``: no other projections than these are needed.
        """
        if known_at is None:
            return states_at(self, person, now, only)
        return folded_before(self.catalogue, self.history(person, known_at), now, only)

    def state(self, person: ports.Person, name: str, now: int, *, known_at: int | None = None) -> State:
        """The state of one projection at ``now``."""
        index = self.catalogue.index[name]
        return self.states(own(person), now, known_at=known_at, only=(index,))[index]

    def views(
        self, person: ports.Person, now: int, *, known_at: int | None = None, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Each projection's view of a person at ``now``, by projection name.

        ``known_at`` asks what was known by then (point in time, as it was served); None means everything known.
        """
        views: dict[str, Any] = {}
        person = own(person)
        with gc_deferred():
            indexes = [
                i
                for i, projection in enumerate(self.catalogue.projections)
                if names is None or projection.name in names
            ]
            states = self.states(person, now, known_at=known_at, only=indexes)
            at_edges = self.history(person, known_at).at_edges
            nothing_known = self.catalogue.nothing_known
            for index in indexes:
                name, state, nothing = self.catalogue.projections[index].name, states[index], nothing_known[index]
                is_alike = state.__class__ is nothing.state.__class__ and state == nothing.state
                if is_alike and _pack(state) == nothing.packed:
                    views[name] = _unpack(nothing.view)
                else:
                    views[name] = view_at(self.catalogue.looks[index], state, now, at_edges)
        return views

    def as_of(self, person: ports.Person, at: int, *, known_at: int | None = None) -> PersonView:
        """A person at an instant; with ``known_at`` by what was known then."""
        if known_at is None:
            return FoldedPersonView(self, own(person), at)
        return AsKnownPersonView(_AsKnown(self, known_at), own(person), at)

    @property
    def index(self) -> Mapping[str, int]:
        """The place of each projection among the states, by name."""
        return self.catalogue.index

    def look(self, index: int) -> Look:
        """How a projection is looked at."""
        return self.catalogue.looks[index]

    def events(
        self,
        person: ports.Person,
        *,
        start: int | None = None,
        stop: int | None = None,
        types: frozenset[str] = frozenset(),
        after: Cursor | None = None,
        limit: int = 100,
        reverse: bool = False,
        skip_damaged: bool = False,
    ) -> list[Recorded]:
        """A page of a person's events by (occurred_at, id), over all their threads, forward or backward."""
        if not 1 <= limit <= EVENTS_PAGE_MAX:
            raise InvalidValue(f"limit must be between 1 and {EVENTS_PAGE_MAX}")
        if after is not None:
            # Go on within the instant of the last event: its ties are sorted by id here, not by the store.
            if reverse:
                stop = after[0] + 1 if stop is None else min(stop, after[0] + 1)
            else:
                start = after[0] if start is None else max(start, after[0])
        past: Callable[[Recorded], bool] = _past(after, reverse)
        span = Span(start, stop, types, None, min(limit + 1, EVENTS_PAGE_MAX), reverse)
        pages = self.store.spans([thread for thread, head in person.heads.items() if head], span)
        chained = {
            thread: chain(page, following_pages(self.store, thread, span, page)) for thread, page in pages.items()
        }
        streams = [
            ties_sorted(self._checked(entries, person.heads[thread], skip_damaged), reverse)
            for thread, entries in chained.items()
        ]
        merged = heapq.merge(*streams, key=occurred_order, reverse=reverse)
        page: list[Recorded] = []
        for recorded in merged:
            if past(recorded):
                page.append(recorded)
                if len(page) == limit:
                    break
        return page

    def _checked(self, entries: Iterable[LogEntry], head: int, skip_damaged: bool) -> Iterator[Recorded]:
        """The events of a thread up to its head. Raises `EventDamaged`, or goes past damaged ones."""
        for entry in entries:
            if entry.sequence <= head:
                try:
                    yield checked_event(entry)
                except EventDamaged as error:
                    self.note_damage(error)
                    if not skip_damaged:
                        raise

    def all_events(
        self,
        person: ports.Person,
        *,
        start: int | None = None,
        stop: int | None = None,
        types: frozenset[str] = frozenset(),
        after: Cursor | None = None,
        reverse: bool = False,
        size: int = EVENTS_PAGE_MAX,
        skip_damaged: bool = False,
        counting: bool = False,
    ) -> Iterator[Recorded]:
        """The same to the end, however many there are, in pages of ``size``; ``counting``: only those that count, as
        folds see them, because their speaker may say them."""
        counts = self.catalogue.event_types.counts
        while page := self.events(
            person,
            start=start,
            stop=stop,
            types=types,
            after=after,
            limit=size,
            reverse=reverse,
            skip_damaged=skip_damaged,
        ):
            yield from (recorded for recorded in page if counts(recorded.event)) if counting else page
            if len(page) < size:
                return
            after = (page[-1].event.occurred_at, page[-1].id)

    def people(self, workspace: str | None, after: str = "", limit: int = 1_000) -> tuple[list[Person], str]:
        """A page of the people of a workspace in a stable order, and the id to continue after ("": the end).

        None means all workspaces, for what an operator does to the whole store.
        """
        start = Key(PERSON, after) if after else None
        items = self.store.scan(PERSON, after=start, limit=limit)
        people = [
            self.by_id(person.id) or person if person.stale else person
            for person in people_of(self.store, self.catalogue, items)
            if isinstance(person, Person) and workspace in (None, person.workspace)
        ]
        return people, items[-1].key.partition if len(items) == limit else ""

    def all_people(self, workspace: str) -> Iterator[Person]:
        """Every person of a workspace, page by page."""
        after = ""
        while True:
            page, after = self.people(workspace, after)
            yield from page
            if not after:
                return

    def identifiers_of(self, workspace: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """By id, how people are named as ``kind:value``, strongest first: one reading of the store for all of them.

        Whoever has gone, or is of another workspace, is left out; a merged person is the survivor.
        """
        rank = self.catalogue.rules.rank
        people = self.lookup.by_ids(ids)
        return {
            id: [str(identifier) for identifier in sorted(person.identifiers.values(), key=rank)]
            for id, person in people.items()
            if person.workspace == workspace
        }

    def people_of(self, workspace: str, ids: Sequence[str]) -> dict[str, ports.Person]:
        """By id, the people of a workspace: one reading of the store for all of them.

        Whoever has gone, or is of another workspace, is left out; a merged person is the survivor.
        """
        return {
            id: self.by_id(person.id) or person if person.stale else person
            for id, person in self.lookup.by_ids(ids).items()
            if person.workspace == workspace
        }

    def upcoming(self, workspace: str, policy: str, before: int, after: str = "") -> Iterator[tuple[str, Person]]:
        """People for whom a policy has a timer due before an instant, in order of its due time, with the cursor after
        each."""
        for timer in pending_timers(self.store, before, after):
            if (timer.workspace, timer.policy) == (workspace, policy):
                person = self.by_thread(timer.thread)
                if person is not None:
                    yield timer.item.key.sort, person


def readable(reader: PersonReader, threads: Sequence[str]) -> dict[str, Person]:
    """As `PersonReader.by_threads`, without those people who cannot be read before a damaged event is repaired."""
    try:
        return reader.by_threads(threads)
    except EventDamaged:
        people = {thread: _readable(reader, thread) for thread in threads}
        return {thread: person for thread, person in people.items() if person is not None}


def _readable(reader: PersonReader, thread: str) -> Person | None:
    try:
        return reader.by_thread(thread)
    except EventDamaged as error:
        reader.note_damage(error)
        return None


class _AsKnown:
    """What people are looked at in when only what was known at an instant counts."""

    def __init__(self, reader: PersonReader, known_at: int) -> None:
        self.catalogue = reader.catalogue
        self.index = reader.index
        self.look = reader.look
        self._reader = reader
        self._known_at = known_at

    def history(self, person: Person) -> StoredHistory:
        """The person's events that were known by then."""
        return self._reader.history(person, self._known_at)


def _past(after: Cursor | None, reverse: bool) -> Callable[[Recorded], bool]:
    if after is None:
        return lambda recorded: True
    if reverse:
        return lambda recorded: occurred_order(recorded) < after
    return lambda recorded: occurred_order(recorded) > after
