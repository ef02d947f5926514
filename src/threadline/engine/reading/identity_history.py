"""Identity at an instant: the joins and splits around a person, and the joins by history imported later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import thread_events
from threadline.engine.folding.packing import unpack_event
from threadline.engine.folding.person import Person
from threadline.engine.folding.states import States
from threadline.engine.reading.lookup import Lookup
from threadline.kernel import ports
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.limits import FUTURE_MAX_SECONDS
from threadline.kernel.store import Span, Store, event_pages
from threadline.kernel.time import SECOND

_CHANGES = Span(types=frozenset({MERGED, SPLIT}))


class _Change(NamedTuple):
    """One join or one split."""

    recorded: Recorded
    known_at: int
    """When it counts as known: when the event does that caused it, which may be imported history."""
    at: int
    """When it was recorded; no later than any change after it, whatever the clock said."""

    @property
    def joins(self) -> bool:
        return self.recorded.event.type == MERGED

    @property
    def survivor(self) -> str:
        """The id of the person who keeps the rest."""
        return str(self.recorded.event.properties["survivor" if self.joins else "person"])

    @property
    def moved(self) -> str:
        """The id of the person who has the moved threads when they are separate."""
        return str(self.recorded.event.properties["merged" if self.joins else "split"])

    @property
    def threads(self) -> set[str]:
        """The threads that move."""
        return set(self.recorded.event.properties["threads"])


_ORDERED_MAX = 200
"""Joins and splits around a person of which the order is found whatever the clock said."""
_STEPS_MAX = 50_000
_Name = tuple[str, str, str]
"""Of a change: its type, its cause, and who is moved."""


class _Part(NamedTuple):
    """Threads that are one person at some instant."""

    id: str
    threads: set[str]


class IdentityHistory:
    """A person, and who they were at any instant that is known.

    A join is an event that names the threads it moved, so it can be undone without the state before. All joins are
    undone, and those recorded by the instant are applied again. History imported since joins the people whom each of
    its events names, so that the order of imports does not matter.
    """

    def __init__(
        self, store: Store, catalogue: Catalogue, lookup: Lookup, person: Person, thread: str, *, named: bool
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._lookup = lookup
        self._person = person
        self._thread = thread
        self._named = named
        """Whether an identifier was named, not a person's id."""
        self._people = {person.id: person}
        """The present people who were ever joined with this person, transitively."""
        self._changes = self._gather()
        """All joins and splits among them, in their order."""
        self._known_by, self._unknown_by = 1 << 63, -(1 << 63)
        """Cached bounds: the first instant at which the identifier is seen as known, the last at which as unknown."""
        self._recorded: dict[int, list[_Part]] = {}
        """Number of changes -> the parts after them."""

    def at(self, known_at: int) -> Person:
        """The person that the thread belonged to at an instant, without states, which are of the present.

        An identifier that was unknown then has a person without threads, whoever has it today.
        """
        if self._named and not self._was_known(known_at):
            return self._made(_Part(self._person.id, set()), known_at)
        late = self._known_late(known_at)
        if not late and all(change.at <= known_at for change in self._changes):
            return self._person
        part = _with(self._parts(known_at, late), self._thread)
        return self._person if part is None else self._made(part, known_at)

    def _was_known(self, known_at: int) -> bool:
        """Whether an event known at an instant names the identifier that was asked for."""
        if self._known_by <= known_at:
            return True
        if known_at <= self._unknown_by:
            return False
        heads = self._heads()
        # Its own thread first: most identifiers first occur there.
        own = {self._thread: heads.pop(self._thread, 0)}
        for recorded in chain(*(self._events(part, known_at) for part in (own, heads))):
            if recorded.known_at <= known_at and self._thread in self._threads_of(recorded):
                self._known_by = recorded.known_at
                return True
        self._unknown_by = known_at
        return False

    def _threads_of(self, recorded: Recorded) -> set[str]:
        """The threads of the identifiers that an event names."""
        rules, workspace = self._catalogue.rules, self._person.workspace
        named = [thread for given in recorded.event.identifiers for thread in rules.threads(workspace, given)]
        return {recorded.thread, *named}

    def linked(self, person: ports.Person, known_at: int) -> list[Identifier]:
        """The identifiers linked to this person at ``known_at``. It reads the events of all people around.

        An identifier in events of other people was refused there, whomever it was linked with later.
        """
        moved = {t for change in self._changes if change.at <= known_at for t in change.threads}
        known = self._threads_known(known_at)
        return [identifier for thread, identifier in person.identifiers.items() if thread in moved or thread in known]

    def _threads_known(self, known_at: int) -> set[str]:
        """The threads of identifiers that events known at an instant link to their people."""
        threads: set[str] = set()
        for recorded in self._events(self._heads(), known_at):
            if recorded.known_at <= known_at:
                threads |= self._linked_by(recorded)
        return threads

    def _linked_by(self, recorded: Recorded) -> frozenset[str]:
        """The threads that an event names, without those that it was refused to join with its person."""
        teller = _with(self._recorded_parts(recorded.recorded_at), recorded.thread)
        return frozenset(() if teller is None else self._threads_of(recorded) & teller.threads)

    def _parts(self, known_at: int, late: Sequence[Recorded]) -> list[_Part]:
        """The people around at an instant: which threads were one person."""
        parts = [_Part(part.id, set(part.threads)) for part in self._recorded_parts(known_at)]
        if not late:
            return parts
        links = set(map(self._linked_by, late))
        events = self._events(self._heads(), known_at)
        early = set().union(*(self._threads_of(event) for event in events if event.recorded_at <= known_at))
        # No event of these was recorded then: history imported since decides whose they were.
        for thread in sorted(frozenset().union(*links) - early):
            part = _with(parts, thread)
            if part is not None and len(part.threads) > 1:
                part.threads.remove(thread)
                parts.append(_Part(thread, {thread}))
        for link in links:
            _unite(parts, link, self._person.id)
        return parts

    def _recorded_parts(self, recorded_at: int) -> list[_Part]:
        """The same by what was recorded at an instant; not to be changed."""
        done = sum(change.at <= recorded_at for change in self._changes)
        if done not in self._recorded:
            parts = [_Part(person.id, set(person.heads)) for person in self._people.values()]
            undone = [(change, _undo(parts, change)) for change in reversed(self._changes)]
            for change, threads in list(reversed(undone))[:done]:
                _do(parts, change, threads)
            self._recorded[done] = parts
        return self._recorded[done]

    def _known_late(self, known_at: int) -> list[Recorded]:
        """History that counts as known at an instant and was recorded later; empty where there is one thread only."""
        heads = self._heads()
        if len(heads) == 1:
            return []
        events = self._events(heads, known_at)
        return [event for event in events if event.event.historical and event.known_at <= known_at < event.recorded_at]

    def _heads(self) -> dict[str, int]:
        return {thread: head for person in self._people.values() for thread, head in person.heads.items()}

    def _events(self, heads: Mapping[str, int], known_at: int) -> Iterator[Recorded]:
        """Events of threads, among them all that were known by an instant."""
        return thread_events(self._store, heads, stop=known_at + FUTURE_MAX_SECONDS * SECOND + 1)

    def _gather(self) -> list[_Change]:
        by_name: dict[_Name, _Change] = {}
        threads: dict[str, list[tuple[int, _Name]]] = {}
        todo = [self._person]
        while todo:
            for recorded in self._events_of(todo.pop()):
                change = _Change(recorded, recorded.recorded_at, recorded.recorded_at)
                # A split is an event of both people.
                name = recorded.event.type, recorded.cause, change.moved
                by_name.setdefault(name, change)
                threads.setdefault(recorded.thread, []).append((recorded.sequence, name))
                for id in (change.survivor, change.moved):
                    if any(id in person.heads for person in self._people.values()):
                        continue
                    if (other := self._lookup.by_thread(id)) is not None:
                        self._people[other.id] = other
                        todo.append(other)
        causes = self._store.find([change.recorded.cause for change in by_name.values()])
        known = {id: unpack_event(entry).known_at for id, entry in causes.items()}
        changes = {
            name: change._replace(known_at=known.get(change.recorded.cause, change.known_at))
            for name, change in by_name.items()
        }
        return _in_order(changes, {thread: [name for _, name in sorted(names)] for thread, names in threads.items()})

    def _events_of(self, person: Person) -> Iterator[Recorded]:
        for thread, head in person.heads.items():
            for entry in event_pages(self._store, thread, _CHANGES):
                if entry.sequence <= head:
                    yield unpack_event(entry)

    def _made(self, part: _Part, known_at: int) -> Person:
        made = Person(part.id, self._person.workspace, self._began(part.id, known_at), States(self._catalogue))
        for thread, identifier, head in self._threads():
            if thread in part.threads:
                made.add_thread(thread, identifier, head)
        return made

    def _began(self, id: str, known_at: int) -> int:
        """When a person was created: the join that ended them says so, or they still exist."""
        for change in self._changes:
            if change.known_at > known_at and change.joins and change.moved == id:
                return int(change.recorded.event.properties["merged_created_at"])
        return self._people.get(id, self._person).created_at

    def _threads(self) -> Iterable[tuple[str, Identifier, int]]:
        for person in self._people.values():
            for thread, head in person.heads.items():
                yield thread, person.identifiers[thread], head


def _in_order(changes: Mapping[_Name, _Change], threads: Mapping[str, Sequence[_Name]]) -> list[_Change]:
    """Changes in the order in which they were made, with the instants by which they are known.

    By when they were recorded alone, a split would come before its join where the clock was set back in between.
    """
    by_time = sorted(changes, key=lambda name: (changes[name].recorded.recorded_at, changes[name].recorded.sequence))
    before: dict[_Name, set[_Name]] = {name: set() for name in changes}
    for names in threads.values():
        for index, name in enumerate(names):
            before[name].update(names[:index])
    search = _Search(changes, before)
    owners = {id: id for change in changes.values() for id in (change.survivor, change.moved, *change.threads)}
    # Beyond the limit the clock is believed.
    order = search.order([], by_time, owners) if len(by_time) <= _ORDERED_MAX else None
    ordered = [changes[name] for name in order or by_time]
    latest = 1 << 63
    for index in reversed(range(len(ordered))):
        latest = min(latest, ordered[index].at)
        ordered[index] = ordered[index]._replace(at=latest)
    return ordered


class _Search:
    """Looks for an order in which changes can have been made, those first that were recorded first."""

    def __init__(self, changes: Mapping[_Name, _Change], before: Mapping[_Name, set[_Name]]) -> None:
        self._changes = changes
        self._before = before
        self._joined = {change.moved for change in changes.values() if change.joins}
        self._steps = _STEPS_MAX

    def order(self, done: list[_Name], left: list[_Name], owners: dict[str, str]) -> list[_Name] | None:
        """The order of all, if there is one that begins so; ``owners``: thread -> who has it by then."""
        if not left:
            return done
        waiting = set(left)
        for name in left:
            self._steps -= 1
            if self._steps < 0:
                return None
            after = None if self._before[name] & waiting else self._made(self._changes[name], owners)
            if after is None:
                continue
            result = self.order([*done, name], [other for other in left if other != name], after)
            if result is not None:
                return result
        return None

    def _made(self, change: _Change, owners: dict[str, str]) -> dict[str, str] | None:
        """The owners after a change; None if it cannot be made with these."""
        survivor, moved = change.survivor, change.moved
        if owners[survivor] != survivor:
            return None
        if change.joins:
            joined = {thread: survivor if owner == moved else owner for thread, owner in owners.items()}
            return joined if owners[moved] == moved else None
        # Whose thread was never joined by a change came to the person by an event.
        if owners[moved] != survivor and (moved in self._joined or owners[moved] != moved):
            return None
        return {thread: moved if thread in change.threads else owner for thread, owner in owners.items()}


def _with(parts: list[_Part], thread: str) -> _Part | None:
    return next((part for part in parts if thread in part.threads), None)


def _undo(parts: list[_Part], change: _Change) -> set[str]:
    """Undo a change; returns the threads that it moved, with those added to them later."""
    return _take(parts, change, change.threads) if change.joins else _join(parts, change)


def _do(parts: list[_Part], change: _Change, threads: set[str]) -> None:
    if change.joins:
        _join(parts, change)
    else:
        _take(parts, change, threads)


def _join(parts: list[_Part], change: _Change) -> set[str]:
    # A person's id is the id of the thread that founded it, and that one never leaves.
    survivor, moved = _with(parts, change.survivor), _with(parts, change.moved)
    if survivor is None or moved is None or survivor is moved:
        return set()
    parts.remove(moved)
    survivor.threads.update(moved.threads)
    return moved.threads


def _unite(parts: list[_Part], threads: frozenset[str], id: str) -> None:
    """Make one part of those that have these threads; if there is one of this id, it stays."""
    several = sorted((part for part in parts if part.threads & threads), key=lambda part: (part.id != id, part.id))
    for part in several[1:]:
        parts.remove(part)
        several[0].threads.update(part.threads)


def _take(parts: list[_Part], change: _Change, threads: set[str]) -> set[str]:
    whole = _with(parts, change.survivor)
    moved = set() if whole is None else whole.threads & threads
    if whole is not None and moved:
        whole.threads.difference_update(moved)
        parts.append(_Part(change.moved, moved))
    return moved
