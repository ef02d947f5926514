"""The people of an attempt: whose each thread is, as a cache or the store has it, and as the attempt changes that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person, person_key, thread_key
from threadline.engine.folding.person_packing import read_people
from threadline.engine.folding.refold import catch_up
from threadline.engine.recording.conflicts import ConcurrencyConflict
from threadline.engine.recording.people_cache import PeopleCache
from threadline.engine.recording.validation import ValidatedEvent
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.store import Store


class WorkingSet:
    """Reads people once, and then knows them as the attempt has changed them."""

    def __init__(self, store: Store, catalogue: Catalogue, cache: PeopleCache) -> None:
        self._store = store
        self._catalogue = catalogue
        self._cache = cache
        self._people: dict[str, Person] = {}
        """Everybody who was looked at, by id."""
        self.owners: dict[str, Person | None] = {}
        """Whose each thread is, as far as it was looked up; None: nobody's."""
        self.touched: dict[str, Person] = {}
        """Those whom this attempt changes, by id."""
        self.departed: dict[str, Person] = {}
        """Id of each who was merged away -> into whom."""

    def warm(self, events: Sequence[ValidatedEvent]) -> None:
        """Read every thread and person that these events need, in two fat reads."""
        owners, cached_owners, cache = self.owners, self._cache.owners, self._cache.people
        unread: dict[str, None] = {}
        wanted: dict[str, list[str]] = {}
        for one in events:
            for name in one.names:
                thread = name.thread
                if thread in owners or thread in unread:
                    continue
                id = cached_owners.get(thread)
                if id is None:
                    unread[thread] = None
                    continue
                person = cache.get(id)
                if person is not None and thread in person.heads:
                    owners[thread] = self._people[id] = person
                else:
                    wanted.setdefault(id, []).append(thread)
        for thread, item in zip(unread, self._store.get([thread_key(thread) for thread in unread]), strict=True):
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
                self._people[id] = person
        self._read(unknown)
        for id, threads in wanted.items():
            person = self._people.get(id)
            if person is not None:
                owners.update((thread, person) for thread in threads if thread in person.heads)

    def _read(self, ids: Sequence[str]) -> None:
        for person in read_people(self._store, self._catalogue, ids):
            if isinstance(person, Person):
                if person.stale:
                    # Definitions changed since this state was written: catch it up before anything is added to it.
                    person.unwritten = frozenset(person.stale) & frozenset(self._catalogue.with_rows)
                    catch_up(self._store, self._catalogue, person)
                person.states.settle()
                self._replace(person)
                self._cache.put(person)

    def _replace(self, person: Person) -> None:
        """Let this be the person of their id. Two objects for one person would number events from two heads."""
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
        """What the events have in common that concern the owner of a thread: the owner's id, or the thread if it is
        nobody's, since whoever is founded by it will have it for an id."""
        owner = self.owners.get(thread)
        if owner is None:
            return self._cache.owners.get(thread) or thread
        return owner.id

    def owner(self, thread: str) -> Person | None:
        """The person a thread belongs to, or None on first contact."""
        if thread in self.owners:
            return self.owners[thread]
        # Another process has merged or split since this was cached: ask the store whose the thread is now.
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
        """The living person of an id; the attempt's own changes included."""
        person = self._living(id)
        if person is None:
            raise StoreDamaged(f"person {id} is named as an owner but is not there")
        return person

    def _living(self, id: str) -> Person | None:
        while id in self.departed:
            id = self.departed[id].id
        if id not in self._people:
            person = self._cache.people.get(id)
            if person is not None:
                self._people[id] = person
            else:
                self._read([id])
        return self._people.get(id)

    def add(self, person: Person) -> None:
        """Let somebody be among these people who has come to be in this attempt."""
        self._people[person.id] = self.touched[person.id] = person

    def claim(self, thread: str, person: Person) -> None:
        """Let a thread be this person's from now on."""
        self.owners[thread] = person
        self._cache.owners.put(thread, person.id)

    def confirm(self, person: Person) -> None:
        """Raise `ConcurrencyConflict` if somebody whom this attempt does not change is another in the store than they
        were thought to be: no condition of its batches would notice."""
        if person.id in self.touched:
            return
        item = self._store.get([person_key(person.id)])[0]
        if item is None or item.version != person.version:
            self._drop(person.id)
            raise ConcurrencyConflict(f"person {person.id} has changed since they were read")

    def keep(self, people: Iterable[Person]) -> None:
        """What was changed of these was committed: let the cache have them."""
        for person in people:
            if person.id in self.departed:
                self._cache.people.forget(person.id)
            else:
                self._cache.put(person)

    def forget(self, ids: Iterable[str]) -> None:
        """Drop people whom this attempt has changed and who were not committed: nobody is repaired."""
        for id in ids:
            person = self._people.get(id)
            self._drop(id)
            if person is not None:
                for thread in person.heads:
                    self._cache.owners.forget(thread)

    def forget_owners(self, threads: Iterable[str]) -> None:
        """Drop whoever has these threads."""
        owners = (self.owners.get(thread) for thread in threads)
        self.forget({owner.id for owner in owners if owner is not None})

    def forget_all(self) -> None:
        """Drop everybody who was looked at: any of them may have been changed by another process since."""
        self.forget(list(self._people))

    def _drop(self, id: str) -> None:
        self._cache.people.forget(id)
        self._people.pop(id, None)
        self.touched.pop(id, None)
