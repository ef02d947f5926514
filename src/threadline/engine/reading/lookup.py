"""People found in the store: by one of their threads, or by an id, through the merges since."""

from __future__ import annotations

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person, read_people, thread_key
from threadline.engine.folding.refold import catch_up
from threadline.kernel.store import Store

_READINGS_MAX = 64
"""Readings for one person, where others are merged or split between one reading and the next."""


def person_of_thread(store: Store, catalogue: Catalogue, thread: str) -> Person | None:
    """The person a thread belongs to; None if there is none."""
    for _ in range(_READINGS_MAX):
        item = store.get([thread_key(thread)])[0]
        person = None if item is None else person_of_id(store, catalogue, item.value.decode())
        # It may have been split off between the two readings: then it is somebody else's by now.
        if person is None or thread in person.heads:
            return person
    return None


def person_of_id(store: Store, catalogue: Catalogue, id: str) -> Person | None:
    """The person of an id, through merges, with every state caught up with the definitions in force."""
    if not id:
        return None
    for _ in range(_READINGS_MAX):
        [found] = read_people(store, catalogue, [id])
        if found is None:
            return None
        if isinstance(found, Person):
            catch_up(store, catalogue, found)
            return found
        # Merged away. They are whoever has the thread that founded them, which may have been split off since with
        # others, or merged again: that is written with the thread itself.
        item = store.get([thread_key(id)])[0]
        if item is None:
            return None
        id = item.value.decode()
    return None
