"""Contention: people whom several processes change at the same time are changed under an advisory lock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager

from threadline.engine.folding.person import Person, person_key
from threadline.engine.recording.people_cache import PeopleCache
from threadline.engine.recording.validation import ValidatedEvent
from threadline.engine.two_generation_cache import TwoGenerationCache
from threadline.kernel.store import Store

CONTENDED_REMEMBERED = 1_000


class ContentionTracker:
    """People on whom this process has lost an optimistic-concurrency race.

    Not thread-safe: used under the recorder's lock, as its cache is.
    """

    def __init__(self, store: Store, cache: PeopleCache) -> None:
        self._store = store
        self._cache = cache
        self._contended: TwoGenerationCache[str, int] = TwoGenerationCache(CONTENDED_REMEMBERED)
        """Person id -> the version at which this process left them. They are read again under their lock."""

    def contended(self, groups: Sequence[Sequence[ValidatedEvent]]) -> list[set[str]]:
        """The contended people whom the events of each group name; empty if nobody is contended at all."""
        return [self._contended_of(group) for group in groups] if self._contended else []

    def _contended_of(self, events: Sequence[ValidatedEvent]) -> set[str]:
        owners = {self._cache.owners.get(name.thread) for event in events for name in event.names}
        return {owner for owner in owners if owner is not None and self._contended.get(owner) is not None}

    @contextmanager
    def locked(self, people: Iterable[str]) -> Iterator[None]:
        """The advisory lock of these people, who are read again under it."""
        ids = sorted(set(people))
        keys = [person_key(id) for id in ids]
        with self._store.advisory_lock(keys):
            for id, item in zip(ids, self._store.get(keys), strict=True):
                if item is None or item.version == self._contended.get(id):
                    self._contended.forget(id)  # no other process has changed them
                self._cache.people.forget(id)
            yield

    def note(self, changed: Iterable[Person], conflicting: Set[str]) -> None:
        """Note the versions at which a commit left people, and those whom another process changed first."""
        for id in conflicting:
            self._contended.put(id, 0)
        if self._contended:
            for person in changed:
                if person.id not in conflicting and self._contended.get(person.id) is not None:
                    self._contended.put(person.id, person.version)
                    self._cache.people.forget(person.id)
