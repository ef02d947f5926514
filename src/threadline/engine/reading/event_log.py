"""The log of all events: one by its id or its key, and all of them in the order of commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from threadline.engine.credentials import Credentials
from threadline.engine.damage import DamagedEvents
from threadline.engine.folding.packing import checked_event
from threadline.engine.reading.sources import sources_of
from threadline.kernel.errors import EventDamaged, NotFound
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.ids import short_hash
from threadline.kernel.names import EVENT_TYPE, NameKind
from threadline.kernel.store import ERASED_DIGEST, FeedEntry, LogEntry, Store, feed_pages, is_erased

LOOKED_AT_MAX = 50_000
"""Events that are read to look for names."""


class EventLog:
    """Reads the log of one store."""

    def __init__(
        self,
        store: Store,
        credentials: Credentials,
        damage: DamagedEvents,
        forms: Mapping[str, Callable[[Event], dict[str, Any]]] = MappingProxyType({}),
    ) -> None:
        self._store = store
        self._credentials = credentials
        self._damage = damage
        self.forms = forms
        """Member of `Event.wire` -> how the message that an event came in is written as it came."""
        self.damaged: Callable[[Collection[str]], list[str]] = damage.of
        """The ids of those events of these threads that are known to be damaged."""

    def event(self, workspace: str, id: str) -> Recorded:
        """One event by its id; raises `NotFound`."""
        return find_event(self._store, workspace, id)

    def events(self, workspace: str, ids: Sequence[str]) -> dict[str, Recorded]:
        """Those of these events that are there and are as they were written, by id: one read."""
        events: dict[str, Recorded] = {}
        for id, entry in self._store.find(ids).items():
            try:
                recorded = checked_event(entry)
            except EventDamaged as error:
                self._damage.note(error)
                continue
            if recorded.event.workspace == workspace:
                events[id] = recorded
        return events

    def of_key(self, workspace: str, source: str, key: str) -> Recorded | None:
        """The event that a source sent under an idempotency key; None if there is none."""
        return self.of_keys(workspace, [source], [key])

    def of_keys(self, workspace: str, sources: Sequence[str], keys: Sequence[str]) -> Recorded | None:
        """The event that the first of these sources sent under one of these keys; None if there is none."""
        ids = [event_id(workspace, source, key) for source in sources for key in keys]
        known = self._store.seen(ids)
        remaining = (id for id in ids if known.get(id, ERASED_DIGEST) != ERASED_DIGEST)
        return next((self.event(workspace, id) for id in remaining), None)

    def unerased_key(self, workspace: str, source: str, key: str) -> str:
        """A key of Threadline's own making, or another one made of it where the event of that key was erased.

        Such keys are functions of what is known. Whoever comes back after an erasure may be where they were before it,
        and what they ask for would be taken for the same thing again.
        """
        while self._store.seen([id := event_id(workspace, source, key)]).get(id) == ERASED_DIGEST:
            key = short_hash("again", key)
        return key

    def sources(self, workspace: str) -> list[str]:
        """Every source that has recorded in a workspace or has a credential for it."""
        return list(dict.fromkeys([*self._credentials.sources(workspace), *sources_of(self._store, workspace)]))

    def feed(self, cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        """Every committed event once, in the order of commits, of all workspaces; see `is_erased` for those erased."""
        return self._store.feed(cursor, limit)

    def feed_end(self) -> str:
        """See `Store.feed_end`."""
        return self._store.feed_end()

    def feed_waits(self, cursor: str = "") -> bool:
        """See `Store.feed_waits`."""
        return self._store.feed_waits(cursor)

    def names_sent(self, sought: Mapping[NameKind, Collection[str]]) -> dict[str, frozenset[str] | None]:
        """By kind the names that events brought until all those sought were met; None if that is unknown: the log is
        empty, or one of them is not among its first `LOOKED_AT_MAX` events."""
        met: dict[NameKind, set[str]] = {kind: set() for kind in sought}
        missing = {kind: set(names) for kind, names in sought.items() if names}
        read = 0
        for cursor, entry in islice(feed_pages(self._store), LOOKED_AT_MAX + 1):
            read += 1
            if missing and not is_erased(entry):
                # Of types alone nothing has to be decoded.
                event = None if {kind.name for kind in missing} == {EVENT_TYPE} else _readable(entry, cursor)
                for kind in [*missing]:
                    brought = {entry.type} if event is None else {*kind.brought(event)}
                    met[kind] |= brought
                    missing[kind] -= brought
                    if not missing[kind]:
                        del missing[kind]
            if not missing:
                break
        is_whole = 0 < read <= LOOKED_AT_MAX
        return {kind.name: frozenset(met[kind]) if is_whole or kind not in missing else None for kind in sought}

    def read(self, feed_entry: FeedEntry) -> Recorded:
        """The event of an entry of the feed. Raises `EventDamaged` for one that is not as it was written."""
        try:
            return checked_event(feed_entry.entry, feed_entry.cursor)
        except EventDamaged as error:
            self._damage.note(error)
            raise


def _readable(entry: LogEntry, cursor: str) -> Event:
    """The event of an entry; one of its type alone where it is not as it was written."""
    try:
        return checked_event(entry, cursor).event
    except EventDamaged:
        return Event(type=entry.type, identifiers=(), occurred_at=0, key="")


def find_event(store: Store, workspace: str, id: str) -> Recorded:
    """One event by its id; raises `NotFound`, and `EventDamaged` for one that is not as it was written."""
    entry = store.find([id]).get(id)
    recorded = None if entry is None else checked_event(entry)
    if recorded is None or recorded.event.workspace != workspace:
        raise NotFound(f"there is no event {id} in workspace {workspace!r}")
    return recorded
