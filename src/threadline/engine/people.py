"""The people of a group: whose each thread is, as the store has it or a cache, and as the group changes that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from threadline.engine.catalogue import Catalogue
from threadline.engine.memo import Memo
from threadline.engine.person import Packed, Person, person_key, thread_key, unpack_person
from threadline.engine.refold import catch_up
from threadline.engine.screen import Screened
from threadline.engine.void import Overtaken
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.store import Item, Store

PEOPLE_CACHED = 15_000
OWNERS_CACHED = 60_000


class Cached(NamedTuple):
    """What is remembered between groups. Another process may have changed it since; then a commit is refused."""

    people: Memo[str, Packed]
    owners: Memo[str, str]
    """Thread -> the id of the person who has it."""

    def clear(self) -> None:
        """Forget everything."""
        self.people.clear()
        self.owners.clear()


def nothing_cached() -> Cached:
    """An empty cache."""
    return Cached(Memo(PEOPLE_CACHED), Memo(OWNERS_CACHED))


class People:
    """Reads people once, and then knows them as the group has changed them."""

    def __init__(self, store: Store, catalogue: Catalogue, cached: Cached) -> None:
        self._store = store
        self._catalogue = catalogue
        self._people, self._owners = cached
        self.read: dict[str, Person] = {}
        """As they were unpacked for this group, by id."""
        self.touched: dict[str, Person] = {}
        """Those whom this group changes, by id."""
        self.departed: dict[str, Person] = {}
        """Id of each who was merged away -> into whom."""
        self._absent: set[str] = set()
        """Threads that are nobody's in the store."""
        self._claimed: list[str] = []
        """Threads whose owner this group has changed in the cache."""

    def prefetch(self, screened: Sequence[Screened]) -> None:
        """Read every thread and person that these events need, in two fat reads."""
        missing: dict[str, None] = {}
        wanted: dict[str, None] = {}
        for one in screened:
            for named in one.named:
                owner = self._owners.get(named.thread)
                if owner is None:
                    missing[named.thread] = None
                elif self._people.get(owner) is None:
                    wanted[owner] = None
        threads = list(missing)
        for thread, item in zip(threads, self._store.get([thread_key(t) for t in threads]), strict=True):
            if item is None:
                self._absent.add(thread)
                continue
            owner = item.value.decode()
            self._owners.put(thread, owner)
            if self._people.get(owner) is None:
                wanted[owner] = None
        ids = list(wanted)
        for item in self._store.get([person_key(p) for p in ids]):
            if item is not None:
                self._people.put(item.key.partition, (item.version, item.value))

    def owner(self, thread: str) -> Person | None:
        """The person a thread belongs to, or None on first contact."""
        owner = self._owners.get(thread)
        if owner is not None:
            person = self._living(owner)
            if person is not None and thread in person.heads:
                return person
            # Another process has merged or split since this was cached: ask the store whose the thread is now.
            self._owners.forget(thread)
        elif thread in self._absent:
            return None
        item = self._store.get([thread_key(thread)])[0]
        if item is None:
            return None
        owner = item.value.decode()
        self._owners.put(thread, owner)
        person = self._living(owner)
        if person is None or thread not in person.heads:
            self._people.forget(owner)
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
        key, packed = person_key(id), self._people.get(id)
        item = self._store.get([key])[0] if packed is None else Item(key, *packed)
        person = None if item is None else unpack_person(item, self._catalogue)
        if not isinstance(person, Person):
            self._people.forget(id)
            return None
        self.read[id] = self._caught_up(person)
        return person

    def _caught_up(self, person: Person) -> Person:
        if person.stale:
            # Definitions changed since this state was written: catch it up before anything is added to it.
            person.unwritten = frozenset(person.stale) & frozenset(self._catalogue.with_rows)
            catch_up(self._store, self._catalogue, person)
        return person

    def claim(self, thread: str, person: Person) -> None:
        """Let a thread be this person's from now on."""
        self._owners.put(thread, person.id)
        self._claimed.append(thread)

    def keep(self) -> None:
        """Everything was committed: let the cache hold it."""
        for id, person in self.touched.items():
            if id in self.departed:
                self._people.forget(id)
            else:
                self._people.put(id, (person.version, person.packed))

    def confirm(self, person: Person) -> None:
        """Raise `Overtaken` if somebody whom this group does not change is another in the store than they were thought
        to be: no condition of its batches would notice."""
        if person.id in self.touched:
            return
        item = self._store.get([person_key(person.id)])[0]
        if item is None or item.version != person.version:
            self._people.forget(person.id)
            raise Overtaken(f"person {person.id} has changed since they were read")

    def forget(self, cached: Cached, *, everybody: bool = False) -> None:
        """Drop from a cache whatever this group has changed: it was not committed, or not by way of this cache.

        ``everybody``: also whom it has only read, who may have been changed by other processes since they were cached.
        """
        for id in {*self.touched, *self.read} if everybody else self.touched:
            cached.people.forget(id)
        for thread in self._claimed:
            cached.owners.forget(thread)
