"""The people of a call: cached between calls, read into a working set, grouped, and locked where processes contend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person, person_key, thread_key
from threadline.engine.folding.person_packing import TAIL_UNCACHED_MAX, Erasing, read_people
from threadline.engine.folding.refold import catch_up
from threadline.engine.recording.validation import BEING_ERASED, UnrecordableEvents, ValidatedEvent
from threadline.engine.two_generation_cache import TwoGenerationCache
from threadline.kernel.event import Recorded
from threadline.kernel.store import Store

PEOPLE_CACHE_BYTES = 72_000_000
"""Memory for people who are kept between calls, where nothing says how much."""
PEOPLE_CACHE_BYTES_RANGE = (48_000_000, 120_000_000)
"""No less and no more without a setting that asks for it."""
ALIVE = 6
"""Bytes of memory for each byte of packed states in one of the two generations: in memory people take some three times
their packed bytes, see `PackedDict`."""
PERSON_BYTES = 1_000
"""Weight of a person besides the states."""
OWNERS_CACHED = 60_000
EVENTS_CACHED = 8_000
"""Events of tails, which readers of this process then need not read and decode. Alive one takes about a kilobyte."""
CONTENDED_REMEMBERED = 1_000


class ConcurrencyConflict(Exception):
    """Another process has changed what this attempt was built on."""


def people_cache_bytes(memory: int) -> int:
    """The budget for people kept between calls on a machine with so many bytes of memory."""
    least, most = PEOPLE_CACHE_BYTES_RANGE
    return min(max(memory // 48, least), most)


class PeopleCache:
    """The recorder's cache between calls. A commit on outdated entries is refused.

    The people in it are mutable: after a change that is not committed they must be dropped. Only the recorder uses it,
    apart from `events`.
    """

    __slots__ = ("bytes_max", "events", "hits", "misses", "owners", "people")

    def __init__(self, bytes_max: int = PEOPLE_CACHE_BYTES) -> None:
        self.bytes_max = bytes_max
        self.people: TwoGenerationCache[str, Person] = TwoGenerationCache(bytes_max // ALIVE, _bytes)
        """People by id, as the store has them now."""
        self.hits = 0
        """How often a call named somebody who was here."""
        self.misses = 0
        """How often a call had to read somebody from the store."""
        self.owners: TwoGenerationCache[str, str] = TwoGenerationCache(OWNERS_CACHED)
        """Thread -> the id of the person who has it."""
        self.events: TwoGenerationCache[str, Recorded] = TwoGenerationCache(EVENTS_CACHED)
        """Id -> event, of the events in people's tails that were committed last."""

    def put(self, person: Person) -> None:
        """Keep a person whose changes were committed."""
        if person.tail:
            for recorded in person.pending:
                self.events.put(recorded.id, recorded)
        person.pending = []
        self.people.put(person.id, person)

    def clear(self) -> None:
        """Drop everything."""
        self.people.clear()
        self.owners.clear()
        self.events.clear()


def _bytes(person: Person) -> int:
    return person.size + PERSON_BYTES


class WorkingSet:
    """Reads people once, and then has them as the attempt has changed them."""

    def __init__(
        self, store: Store, catalogue: Catalogue, cache: PeopleCache, give_way: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._cache = cache
        self._give_way = give_way
        """Called between two people who are read."""
        self._people: dict[str, Person] = {}
        """People read so far, by id."""
        self.owners: dict[str, Person | None] = {}
        """Thread -> its person, as far as read; None: nobody's."""
        self.touched: dict[str, Person] = {}
        """The people changed by this attempt, by id."""
        self.departed: dict[str, Person] = {}
        """Id of a person merged away -> the survivor."""
        self._erasing: set[str] = set()
        """Ids of people who are being erased."""

    def warm(self, events: Sequence[ValidatedEvent]) -> None:
        """Read the threads and people of these events, in two reads of the store."""
        owners, cached_owners, cache = self.owners, self._cache.owners, self._cache.people
        unread: dict[str, None] = {}
        wanted: dict[str, list[str]] = {}
        for event in events:
            for thread in event.threads:
                if thread in owners or thread in unread:
                    continue
                id = cached_owners.get(thread)
                if id is None:
                    unread[thread] = None
                    continue
                person = cache.get(id)
                if person is not None and thread in person.heads:
                    self._cache.hits += id not in self._people
                    owners[thread] = self._people[id] = person
                else:
                    wanted.setdefault(id, []).append(thread)
        items = self._store.get([thread_key(thread) for thread in unread]) if unread else ()
        for thread, item in zip(unread, items, strict=True):
            if item is None:
                owners[thread] = None
            else:
                id = item.value.decode()
                cached_owners.put(thread, id)
                wanted.setdefault(id, []).append(thread)
        unknown = []
        for id, threads in wanted.items():
            person = cache.get(id)
            if person is None or any(thread not in person.heads for thread in threads):
                unknown.append(id)
            else:
                self._cache.hits += id not in self._people
                self._people[id] = person
        if unknown:
            self._cache.misses += len(unknown)
            self._read(unknown)
        for id, threads in wanted.items():
            person = self._people.get(id)
            if person is not None:
                owners.update((thread, person) for thread in threads if thread in person.heads)

    def _read(self, ids: Sequence[str]) -> None:
        for id, person in zip(ids, read_people(self._store, self._catalogue, ids), strict=True):
            self._give_way()
            if isinstance(person, Erasing):
                self._erasing.add(id)
            elif isinstance(person, Person):
                if person.stale:
                    # Definitions changed since this state was written: catch it up before anything is added to it.
                    person.unwritten = frozenset(person.stale) & frozenset(self._catalogue.with_rows)
                    catch_up(self._store, self._catalogue, person)
                person.states.in_parts = True
                person.states.settle()
                person.states.drop_tail()
                if person.tail and len(person.tail) >= TAIL_UNCACHED_MAX:
                    person.tail = None
                self._replace(person)
                self._cache.put(person)

    def _replace(self, person: Person) -> None:
        """Replace the object of a person. Two objects for one person would number events from two heads."""
        before = self._people.get(person.id)
        if before is not None:
            owners = self.owners
            for thread in [thread for thread, owner in owners.items() if owner is before]:
                if thread in person.heads:
                    owners[thread] = person
                else:
                    del owners[thread]
        self._people[person.id] = person

    def group_of(self, thread: str) -> str:
        """The id of a thread's owner; for an unowned thread the thread, which will be the id of its person."""
        owner = self.owners.get(thread)
        if owner is None:
            return self._cache.owners.get(thread) or thread
        return owner.id

    def owner(self, thread: str) -> Person | None:
        """The person a thread belongs to, or None on first contact."""
        if thread in self.owners:
            return self.owners[thread]
        # Another process has merged or split since this was cached: read the owner from the store.
        item = self._store.get([thread_key(thread)])[0]
        if item is None:
            self.owners[thread] = None
            return None
        id = item.value.decode()
        self._cache.owners.put(thread, id)
        person = self._living(id)
        if person is None or thread not in person.heads:
            self._drop(id)
            self._cache.owners.forget(thread)
            raise ConcurrencyConflict(f"thread {thread} is newer than what is known of person {id}")
        self.owners[thread] = person
        return person

    def person(self, id: str) -> Person:
        """The person of an id that was just read, through the merges of this attempt."""
        person = self._living(id)
        if person is None:
            self._drop(id)
            raise ConcurrencyConflict(f"person {id} was merged or erased since they were read")
        return person

    def survivor(self, id: str) -> str:
        """The id of whoever a person has become by the merges of this attempt that are not dropped."""
        while id in self.departed:
            id = self.departed[id].id
        return id

    def _living(self, id: str) -> Person | None:
        id = self.survivor(id)
        if id not in self._people:
            person = self._cache.people.get(id)
            if person is not None:
                self._people[id] = person
            else:
                self._read([id])
        if id in self._erasing:
            # Not a conflict: trying again at once would only wait for the erasure, which may take minutes.
            raise UnrecordableEvents([], BEING_ERASED, "it names a person who is being erased")
        return self._people.get(id)

    def add(self, person: Person) -> None:
        """Add a person created in this attempt."""
        self._people[person.id] = self.touched[person.id] = person

    def claim(self, thread: str, person: Person) -> None:
        """Make a person the owner of a thread."""
        self.owners[thread] = person
        self._cache.owners.put(thread, person.id)

    def confirm(self, person: Person) -> None:
        """Raise `ConcurrencyConflict` if a person whom this attempt only reads has changed in the store: no condition
        of its batches would notice."""
        if person.id in self.touched:
            return
        item = self._store.get([person_key(person.id)])[0]
        if item is None or item.version != person.version:
            self._drop(person.id)
            raise ConcurrencyConflict(f"person {person.id} has changed since they were read")

    def keep(self, people: Iterable[Person]) -> None:
        """Put people whose changes are committed in the cache."""
        for person in people:
            if person.id in self.departed:
                self._cache.people.forget(person.id)
            else:
                self._cache.put(person)

    def forget(self, ids: Iterable[str]) -> None:
        """Drop people whose changes were not committed; they are read again."""
        for id in ids:
            self.departed.pop(id, None)  # or what was committed of them before would count as the survivor's
            person = self._people.get(id)
            self._drop(id)
            if person is not None:
                for thread in person.heads:
                    self._cache.owners.forget(thread)

    def forget_owners(self, threads: Iterable[str]) -> None:
        """Drop the owners of these threads."""
        owners = (self.owners.get(thread) for thread in threads)
        self.forget({owner.id for owner in owners if owner is not None})

    def forget_all(self) -> None:
        """Drop everybody: any of them may have been changed by another process since."""
        self.forget(list(self._people))

    def _drop(self, id: str) -> None:
        self._cache.people.forget(id)
        self._people.pop(id, None)
        self.touched.pop(id, None)


def assign(events: Sequence[ValidatedEvent], people: WorkingSet) -> list[list[ValidatedEvent]]:
    """The events in groups, in the order of the first event of each.

    Events that name the same person, or the same new identifier, are one group; an event with identifiers of several
    people joins their groups. The person of each event is decided when its group is worked on.
    """
    groups: dict[str, list[ValidatedEvent]] = {}
    merged: dict[str, str] = {}
    owners = people.owners
    for event in events:
        names = event.names
        owner = owners.get(names[0].thread)
        key = owner.id if owner is not None else people.group_of(names[0].thread)
        while key in merged:
            key = merged[key]
        for thread in event.threads[1:]:
            if owner is not None and owners.get(thread) is owner:
                continue
            other = people.group_of(thread)
            while other in merged:
                other = merged[other]
            if other != key:
                merged[other] = key
                earlier = groups.pop(other, None)
                if earlier is not None:
                    groups[key] = sorted([*groups.get(key, ()), *earlier], key=_position)
        groups.setdefault(key, []).append(event)
    return list(groups.values())


def _position(event: ValidatedEvent) -> int:
    return event.position


class ContentionTracker:
    """People on whom this process has lost an optimistic-concurrency race.

    Not thread-safe: used under the recorder's lock, as its cache is.
    """

    def __init__(self, store: Store, cache: PeopleCache) -> None:
        self._store = store
        self._cache = cache
        self._contended: dict[str, int] = {}
        """Person id -> the version at which this process left them. They are read again under their lock."""

    def contended(self, groups: Sequence[Sequence[ValidatedEvent]]) -> list[set[str]]:
        """The contended people whom the events of each group name; empty if nobody is contended at all."""
        return [self._contended_of(group) for group in groups] if self._contended else []

    def _contended_of(self, events: Sequence[ValidatedEvent]) -> set[str]:
        owners = {self._cache.owners.get(name.thread) for event in events for name in event.names}
        return {owner for owner in owners if owner is not None and owner in self._contended}

    @contextmanager
    def locked(self, people: Iterable[str]) -> Iterator[None]:
        """The advisory lock of these people, who are read again under it."""
        ids = sorted(set(people))
        keys = [person_key(id) for id in ids]
        with self._store.advisory_lock(keys):
            for id, item in zip(ids, self._store.get(keys), strict=True):
                if item is None or item.version == self._contended.get(id):
                    self._contended.pop(id, None)  # no other process has changed them
                self._cache.people.forget(id)
            yield

    def note(self, changed: Iterable[Person], conflicting: Set[str]) -> None:
        """Note the versions at which a commit left people, and those whom another process changed first."""
        for id in conflicting:
            if len(self._contended) >= CONTENDED_REMEMBERED:
                self._contended.pop(next(iter(self._contended)))
            self._contended[id] = 0
        if self._contended:
            for person in changed:
                if person.id not in conflicting and person.id in self._contended:
                    self._contended[person.id] = person.version
                    self._cache.people.forget(person.id)
