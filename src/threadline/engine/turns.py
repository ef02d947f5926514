"""Turns: people whom other processes change as well are changed by one process after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

from threadline.engine.memo import Memo
from threadline.engine.people import Cached
from threadline.engine.person import Person, person_key
from threadline.engine.screen import Screened
from threadline.kernel.store import Store

CONTENDED_REMEMBERED = 1_000


class Turns:
    """Whom other processes change as well, as far as this one was ever overtaken by them.

    Not thread-safe: used under the recorder's lock, as its cache is.
    """

    def __init__(self, store: Store, cached: Cached) -> None:
        self._store = store
        self._cached = cached
        self._contended: Memo[str, int] = Memo(CONTENDED_REMEMBERED)
        """Such people, and the version at which this process left them. What is cached of them is stale, so they are
        read again when it is this process's turn."""

    def needed(self, screened: Iterable[Screened]) -> dict[int, set[str]]:
        """By position, the events that have to wait for a turn, and those of the people whom they name for whom it has
        to be taken. Nobody's events change places: whatever names somebody whom an earlier one names waits with it."""
        found: dict[int, set[str]] = {}
        held: set[str] = set()
        if not self._contended:
            return found
        for one in screened:
            owners = {owner for named in one.named if (owner := self._cached.owners.get(named.thread)) is not None}
            contended = {owner for owner in owners if self._contended.get(owner) is not None}
            if not contended and not held:
                continue
            people = owners | {named.thread for named in one.named}
            if contended or people & held:
                found[one.position] = contended
                held |= people
        return found

    @contextmanager
    def taken(self, contended: Iterable[Set[str]]) -> Iterator[None]:
        """A turn for all of these people, who are read anew at its beginning."""
        people = sorted(set().union(*contended))
        keys = [person_key(id) for id in people]
        with self._store.turn(keys):
            for id, item in zip(people, self._store.get(keys), strict=True):
                if item is None or item.version == self._contended.get(id):
                    self._contended.forget(id)  # nobody else has been there
                if item is not None:
                    self._cached.people.put(id, (item.version, item.value))
            yield

    def note(self, changed: Mapping[str, Person], overtaken: Set[str]) -> None:
        """Remember how a commit left those whom it changed, and in whose change another process was faster."""
        for id, person in changed.items():
            if id in overtaken or self._contended.get(id) is not None:
                self._contended.put(id, 0 if id in overtaken else person.version)
                self._cached.people.forget(id)
