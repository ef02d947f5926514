"""People found in the store: by one of their threads, or by an id, through the merges since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person, person_key, snapshot_key, thread_key
from threadline.engine.folding.person_packing import Erasing, Found, assembled, erasing, people_of
from threadline.engine.folding.refold import catch_up
from threadline.engine.two_generation_cache import TwoGenerationCache
from threadline.kernel.event import Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import Item, Store

_READINGS_MAX = 64
"""Reads for one person, where merges and splits come between one read and the next."""
STATE_BYTES_MAX = 2 * 1_024 * 1_024
"""Packed states of the people who were read last, in one generation."""

OWNERS_MAX = 20_000
"""Threads whose owners are remembered, in one generation."""


class _Read(NamedTuple):
    """A person as they were read, and the item that says so."""

    item: Item
    person: Person


class Lookup:
    """Finds people. A person who is read again unchanged is neither unpacked nor folded again.

    The people are shared between reading threads: nobody may change them.
    """

    def __init__(
        self, store: Store, catalogue: Catalogue, recent: Callable[[str], Recorded | None] | None = None
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._recent = recent
        """An event by its id, if it is known without asking the store."""
        self._read: TwoGenerationCache[str, _Read] = TwoGenerationCache(STATE_BYTES_MAX, _bytes)
        self._owners: TwoGenerationCache[str, str] = TwoGenerationCache(OWNERS_MAX)
        """Thread -> the id of whom it was with when it was read last. A guess, which every read proves."""

    def by_thread(self, thread: str) -> Person | None:
        """The person a thread belongs to; None if there is none."""
        likely = self._owners.get(thread)
        if likely is not None:
            # One read instead of two: nearly every thread stays with whom it is with.
            owner, *items = self._store.get([thread_key(thread), person_key(likely), snapshot_key(likely)])
            if owner is not None and owner.value.decode() == likely:
                candidate = self._people([likely], items)[likely]
                if isinstance(candidate, Person) and thread in candidate.heads:
                    return candidate
        for _ in range(_READINGS_MAX):
            item = self._store.get([thread_key(thread)])[0]
            person = None if item is None else self.by_id(item.value.decode())
            # It may have been split off between the two reads, and be another person's by now.
            if person is None or thread in person.heads:
                if person is not None:
                    self._owners.put(thread, person.id)
                return person
        return None

    def erasure_of(self, thread: str) -> str:
        """The id of the erasure that the person of a thread is in; empty if there is none."""
        # The marker alone: of somebody who cannot be read, this can be said all the same.
        item = self._store.get([thread_key(thread)])[0]
        marker = None if item is None else erasing(self._store.get([person_key(item.value.decode())])[0])
        return "" if marker is None else marker.erasure

    def by_threads(self, threads: Sequence[str]) -> dict[str, Person]:
        """By thread, the people that some threads belong to, read together."""
        wanted = list(dict.fromkeys(threads))
        items = self._store.get([thread_key(thread) for thread in wanted])
        owners = {thread: item.value.decode() for thread, item in zip(wanted, items, strict=True) if item is not None}
        people = self._people(list(dict.fromkeys(owners.values())))
        result = {}
        for thread, id in owners.items():
            person = people[id]
            if not isinstance(person, Person) or thread not in person.heads:
                person = self.by_thread(thread)  # merged or split off between the reads
            if person is not None:
                result[thread] = person
        return result

    def by_id(self, id: str) -> Person | None:
        """The person of an id, through merges, with every state caught up with the definitions in force."""
        if not id:
            return None
        for _ in range(_READINGS_MAX):
            person_or_id = self._person(id)
            if isinstance(person_or_id, Erasing):
                return None
            if not isinstance(person_or_id, str):
                return person_or_id
            # Merged away: the person is the one who has the founding thread, which may have been split off or merged
            # again since.
            item = self._store.get([thread_key(id)])[0]
            if item is None:
                return None
            id = item.value.decode()
        return None

    def by_ids(self, ids: Sequence[str]) -> dict[str, Person]:
        """By id, the people of some ids, through merges, read together; states may be those of other definitions."""
        items = [item for item in self._store.get([person_key(id) for id in ids]) if item is not None]
        people = zip(items, people_of(self._store, self._catalogue, items), strict=True)
        by_id = {
            item.key.partition: person if isinstance(person, Person) else self.by_id(item.key.partition)
            for item, person in people
        }
        return {id: person for id, person in by_id.items() if person is not None}

    def _person(self, id: str) -> Found:
        return self._people([id])[id]

    def _people(self, ids: Sequence[str], read: Sequence[Item | None] | None = None) -> dict[str, Found]:
        """The people of some ids: of one who was merged away what their item says instead; None if there is none.

        ``read``: of each the item and that of the snapshot, where they were read before.
        """
        keys = [key for id in ids for key in (person_key(id), snapshot_key(id))]
        items = self._store.get(keys) if read is None else read
        people: dict[str, Found] = dict.fromkeys(ids)
        unread: list[tuple[Item, Item | None]] = []
        for id, item, snapshot in zip(ids, items[::2], items[1::2], strict=True):
            if item is None:
                continue
            known = self._read.get(id)
            if known is not None and known.item == item:
                people[id] = known.person
            else:
                unread.append((item, snapshot))
        if unread:
            made = assembled(self._store, self._catalogue, [pair[0] for pair in unread], [pair[1] for pair in unread])
            for (item, _), person in zip(unread, made, strict=True):
                people[item.key.partition] = person
                if isinstance(person, Person):
                    self._remember(item, person)
        return people

    def _remember(self, item: Item, person: Person) -> None:
        self._follow_recent(person)
        catch_up(self._store, self._catalogue, person)
        # A reading between two commits may have found a later person than the item; provisional states go on changing.
        if person.version == item.version and person.provisional is None:
            self._read.put(item.key.partition, _Read(item, person))

    def _follow_recent(self, person: Person) -> None:
        """Let a person's tail come from memory, if all of it is there."""
        if person.tail and self._recent is not None:
            recent = self._recent
            tail = [recorded for id in person.tail if (recorded := recent(id.hex())) is not None]
            if len(tail) == len(person.tail):
                person.states.follow(lambda: tail)


def owners(store: Store, threads: Iterable[str]) -> dict[str, str]:
    """Whose each of these threads is now. One that nobody has, because its person is erased, is left out."""
    wanted = sorted(threads)
    by_thread: dict[str, str] = {}
    for start in range(0, len(wanted), PAGE_ITEMS_MAX):
        page = wanted[start : start + PAGE_ITEMS_MAX]
        for thread, item in zip(page, store.get([thread_key(id) for id in page]), strict=True):
            if item is not None:
                by_thread[thread] = item.value.decode()
    return by_thread


def _bytes(read: _Read) -> int:
    return read.person.size + len(read.item.value)
