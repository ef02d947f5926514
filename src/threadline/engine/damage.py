"""Damaged events: those found in the log, and what is known of them until they are repaired."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from threadline.engine.folding.packing import check_entry
from threadline.kernel.errors import EventDamaged, Unavailable
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import ERASED_DIGEST, Batch, Delete, FeedEntry, Key, Put, Store, is_erased
from threadline.kernel.time import SECOND, Clock
from threadline.kernel.typed import prepared

DAMAGED = "damaged_event"
"""Table of one item for each damaged event that somebody has met."""
REFRESH_SECONDS = 5
"""For how long what other processes have met may go unknown here."""
NOT_FOUND = "it is whole, and is not what is found under its id"
_ALL = "-"

log = logging.getLogger("threadline.damage")


def damaged_key(id: str) -> Key:
    """Where the mark of a damaged event is."""
    return Key(DAMAGED, _ALL, id)


class Damage(NamedTuple):
    """A damaged entry of the log, where it is, and what is wrong with it."""

    feed_entry: FeedEntry
    why: str

    @property
    def error(self) -> EventDamaged:
        """What whoever reads the event is answered."""
        cursor, entry = self.feed_entry
        return EventDamaged(entry.id, entry.thread, entry.sequence, self.why, cursor)


def damage_of(store: Store, page: Sequence[FeedEntry]) -> list[Damage]:
    """Those of a page of the feed that are not as they were written, or are not found under their ids."""
    faults = [check_entry(feed_entry.entry) for feed_entry in page]
    ids = [feed_entry.entry.id for feed_entry, why in zip(page, faults, strict=True) if not why]
    stored, digests = store.find(ids), store.seen(ids)
    damaged = []
    for feed_entry, why in zip(page, faults, strict=True):
        entry = feed_entry.entry
        if not why and digests.get(entry.id) == ERASED_DIGEST:
            continue  # or erased since the page was read
        is_found = is_erased(entry) or stored.get(entry.id) == entry
        if why or not is_found or digests.get(entry.id) != entry.digest:
            damaged.append(Damage(feed_entry, why or NOT_FOUND))
    return damaged


class CheckedLog:
    """The whole log of a store, checked page by page."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entries = 0
        self.damaged: list[Damage] = []

    def pages(self) -> Iterator[Sequence[FeedEntry]]:
        """Check page after page; yields each once it is checked."""
        cursor = ""
        while page := self._store.feed(cursor, PAGE_ITEMS_MAX):
            cursor = page[-1].cursor
            self.entries += len(page)
            self.damaged += damage_of(self._store, page)
            yield page


@prepared
class DamagedEvent(msgspec.Struct, array_like=True, frozen=True):
    """An event that was met and could not be given out."""

    id: str
    thread: str
    sequence: int
    position: str
    """The cursor of the feed behind it; empty where it was met elsewhere."""
    why: str
    met_at: int


class DamagedEvents:
    """The damaged events of one store that some process has met. Thread-safe: what is known is replaced whole.

    At most a page of them is known by name. `verify` finds and counts them all.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: Mapping[str, DamagedEvent] = {}
        self._looked_at: int | None = None
        self._lock = threading.Lock()
        self.met = 0
        """How often this process has met one."""

    def note(self, error: EventDamaged) -> None:
        """Mark an event as damaged, and log it if this process has not met it before."""
        self.met += 1
        name = _name(error)
        with self._lock:
            if name in self._known and (self._known[name].position or not error.position):
                return
            damaged = DamagedEvent(error.id, error.thread, error.sequence, error.position, error.why, self._clock())
            self._known = {**self._known, name: damaged}
        log.error("%s; %s", error, error.hint)
        # A store that is open for reading, or full, is told by whoever meets it next.
        with suppress(Unavailable):
            self._store.commit([Batch(writes=[Put(damaged_key(name), msgspec.msgpack.encode(damaged))])])

    def known(self) -> Mapping[str, DamagedEvent]:
        """What is known to be damaged, by name; what others have met since is in it after `REFRESH_SECONDS`."""
        now = self._clock()
        if self._looked_at is None or not 0 <= now - self._looked_at < REFRESH_SECONDS * SECOND:
            items = self._store.query(DAMAGED, _ALL, limit=PAGE_ITEMS_MAX)
            with self._lock:
                self._known = {item.key.sort: msgspec.msgpack.decode(item.value, type=DamagedEvent) for item in items}
            self._looked_at = now
        return self._known

    def of(self, threads: Collection[str]) -> list[str]:
        """The ids of the damaged events in these threads."""
        known = self.known()
        return sorted(event.id for event in known.values() if event.thread in threads) if known else []

    def forget(self, whole: Collection[str]) -> None:
        """Take the marks of events that are whole again."""
        names = [name for name, event in self.known().items() if event.id in whole]
        for name in names:
            self._store.commit([Batch(writes=[Delete(damaged_key(name))])])
        self._looked_at = None

    def recheck(self) -> None:
        """Take the marks of events that are as they were written after all, or again."""
        entries = self._store.find([event.id for event in self.known().values() if event.id])
        self.forget({id for id, entry in entries.items() if not check_entry(entry)})


def _name(error: EventDamaged) -> str:
    return error.id or f"{error.thread}.{error.sequence}"
