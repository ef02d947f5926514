"""Every key that belongs to a person, whoever of two stores or two instants is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from threadline.engine.catalogue import Catalogue
from threadline.engine.draft import index_rows
from threadline.engine.person import Person, person_key, thread_key, unpack_person
from threadline.engine.waiting import timer_key
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
        for item in (item for store in stores for item in store.get(wanted) if item is not None):
            keys[item.key] = None
            person = unpack_person(item, catalogue)
            if isinstance(person, Person):
                threads |= person.heads.keys() - known
                keys.update(dict.fromkeys(_keys_beside(person, catalogue)))
            else:
                people.add(person)
        people -= seen
    return list(keys)


def _keys_beside(person: Person, catalogue: Catalogue) -> Iterator[Key]:
    yield from index_rows(person, catalogue)
    for name, due_at in person.timers.items():
        thread, policy, key = name.split("/", 2)
        yield timer_key(thread, policy, key, due_at)
