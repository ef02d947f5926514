"""Values that policies share in a workspace: made of its items, cached, and made again when these change."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from threadline.engine.definition_history import contents
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import NotFound
from threadline.kernel.policy import REMEMBERED
from threadline.kernel.store import Batch, Check, Delete, Key, Put, Refusal, Store, query_pages
from threadline.kernel.time import SECOND, Clock

EDITION = "edition"
"""Table of one item for each `Shared` and workspace; its version grows with every change of the items."""

_UNKNOWN = -1


class _Made(NamedTuple):
    edition: int
    value: Any
    looked_at: int


class SharedValues:
    """The values of one store's `Shared`. Thread-safe: entries are replaced whole; one that was read while a `change`
    was committed is dropped."""

    def __init__(self, store: Store, catalogue: Catalogue, clock: Clock, refresh_seconds: float | None = 0.0) -> None:
        self.refresh_seconds = refresh_seconds
        """Lifetime of a cached value; None: for ever, which is right where no other process writes to the store. A
        `change` of this process is seen at once in any case."""
        self._store = store
        self._clock = clock
        self._declared = {shared.name: shared for shared in catalogue.shared}
        self._made: dict[tuple[str, str], _Made] = {}
        self._changes: dict[tuple[str, str], int] = {}
        """Changes of each by this process: a value that was read before a change must not be cached after it."""
        self._lock = threading.Lock()
        self.edition = 0
        """Grows with every value that is made or dropped: whoever knows it has nothing to ask for where values live for
        ever."""

    def current(self, workspace: str, name: str) -> Any:
        """The value to record events by: at most `refresh_seconds` old."""
        made = self._made.get((workspace, name))
        if made is None or made.edition == _UNKNOWN:
            return self.fresh(workspace, name)
        if self.refresh_seconds is None or 0 <= self._clock() - made.looked_at < self.refresh_seconds * SECOND:
            return made.value
        return self.fresh(workspace, name)

    def fresh(self, workspace: str, name: str) -> Any:
        """The value as the store has it now: one read if nothing has changed. Raises `NotFound` for an unknown name."""
        shared = self._declared.get(name)
        if shared is None:
            raise NotFound(f"nothing is shared under the name {name!r}")
        now = self._clock()
        key = (workspace, name)
        changes = self._changes.get(key, 0)
        item = self._store.get([edition_key(workspace, name)])[0]
        edition = 0 if item is None else item.version
        made = self._made.get(key)
        if made is None or made.edition != edition:
            # A change between these reads has a later edition, and is read when that is seen.
            rows = query_pages(self._store, name, workspace) if edition else ()
            items = {item.key.sort: item.value for item in rows}
            if shared.remembers:
                items |= {f"{REMEMBERED}{sort}": content for sort, content in contents(self._store, name)}
            made = _Made(edition, shared.make(items, None if made is None else made.value), now)
        with self._lock:
            settled = self._changes.get(key, 0) == changes
            self._made[key] = made._replace(edition=made.edition if settled else _UNKNOWN, looked_at=now)
            self.edition += 1
        return made.value

    def change(self, workspace: str, name: str, writes: Sequence[Put | Delete | Check]) -> Refusal | None:
        """Commit changes of the items, and whatever belongs with them; None once they are durable, else why not."""
        try:
            return self._store.commit([Batch(writes=[*writes, _edition(workspace, name)])])[0]
        finally:
            self._forget((workspace, name))  # even if the commit failed: it may have gone through

    def writes(self, workspace: str, name: str, writes: Sequence[Put | Delete]) -> list[Put | Delete]:
        """Changes of the items with what belongs to them: for another commit, after which the engine reloads."""
        return [*writes, _edition(workspace, name)]

    def _forget(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._changes[key] = self._changes.get(key, 0) + 1
            made = self._made.get(key)
            if made is not None:
                self._made[key] = made._replace(edition=_UNKNOWN)
                self.edition += 1


def edition_key(workspace: str, name: str) -> Key:
    """The key of the edition of a `Shared`."""
    return Key(EDITION, name, workspace)


def _edition(workspace: str, name: str) -> Put:
    return Put(edition_key(workspace, name), b"-")
