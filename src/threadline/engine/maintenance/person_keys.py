"""Every key that belongs to a person, whoever of two stores or two instants is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person, person_key, snapshot_key, thread_key
from threadline.engine.folding.person_packing import Erasing, Found, index_rows, people_of
from threadline.engine.scheduled import timer_key
from threadline.kernel.store import Key, Store


def keys_of_people(stores: Sequence[Store], catalogue: Catalogue, threads: set[str]) -> list[Key]:
    """Every key that belongs to the people who have these threads in any of the stores, before a join or a split and
    after it: their items, all their threads, index rows and timers."""
    keys: dict[Key, None] = {}
    known: set[str] = set()
    seen: set[str] = set()
    people: set[str] = set()
    while threads or people:
        known |= threads
        asked = [thread_key(thread) for thread in sorted(threads)]
        keys.update(dict.fromkeys(asked))
        # A thread may have founded somebody who was joined to another since: then no thread leads there any more.
        people |= threads | {item.value.decode() for store in stores for item in store.get(asked) if item is not None}
        wanted = [person_key(id) for id in sorted(people - seen)]
        seen |= people
        threads, people = set(), set()
        owners: list[Found] = []
        for store in stores:
            items = [item for item in store.get(wanted) if item is not None]
            keys.update((key, None) for item in items for key in (item.key, snapshot_key(item.key.partition)))
            owners += people_of(store, catalogue, items)
        for person in owners:
            if isinstance(person, Person):
                threads |= person.heads.keys() - known
                keys.update(dict.fromkeys(_keys_beside(person, catalogue)))
            elif isinstance(person, Erasing):
                threads.update(set(person.threads) - known)
            elif person is not None:
                people.add(person)
        people -= seen
    return list(keys)


def _keys_beside(person: Person, catalogue: Catalogue) -> Iterator[Key]:
    yield from index_rows(person, catalogue)
    for name, due_at in person.timers.items():
        thread, policy, key = name.split("/", 2)
        yield timer_key(thread, policy, key, due_at)
