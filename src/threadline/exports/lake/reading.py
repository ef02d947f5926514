"""A range of the log, as it is read for the lake."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import check_entry
from threadline.exports.lake.lake import Lake, Manifest
from threadline.exports.lake.rows import event_table, joined
from threadline.exports.lake.schema import RawBody, raw_body
from threadline.kernel.errors import Conflict, EventDamaged
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import FeedEntry, Store, is_erased

RANGE_BYTES = 64 * 1_024 * 1_024
"""Bytes of bodies behind which a range ends: what is in memory at a time."""


class Parts(Protocol):
    """The parts of the engine that the lake is made of."""

    @property
    def store(self) -> Store:
        """The store whose log it follows."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """What is declared of events and identifiers."""
        ...


class Range(NamedTuple):
    """Entries of the log, right behind those that the lake has."""

    first: int
    """Position of the first entry."""
    table: Any
    """Those that are not erased, with the columns of `RAW`, in which each thread is its own person."""
    manifest: Manifest
    """With the position of the last entry, and without any file of them."""

    @property
    def size(self) -> int:
        """Entries, those that are erased as well."""
        return self.manifest.position - self.first + 1


def check_log(store: Store, lake: Lake, manifest: Manifest) -> None:
    """Raise `Conflict` unless the log has, where the lake ends, the entry with which the lake ends."""
    if not manifest.position:
        return
    last = store.feed(manifest.last_cursor, 1)
    if not last or (last[0].cursor, last[0].entry.id) != (manifest.cursor, manifest.last_id):
        raise Conflict(
            f"the lake {lake.storage.url()} was made of another store than this, or of a newer copy of it",
            hint="Begin a lake in an empty folder: the log of a store that was moved or restored is another.",
        )


def read_range(store: Store, manifest: Manifest, most: int) -> Range:
    """The next entries behind what the lake has, at most so many. Raises `EventDamaged`."""
    tables: list[Any] = []
    position, cursor, size, newest = manifest.position, manifest.cursor, 0, manifest.recorded_at
    reached: dict[str, Any] = {}
    while (count := position - manifest.position) < most and size < RANGE_BYTES:
        page = store.feed(cursor, min(PAGE_ITEMS_MAX, most - count))
        if not page:
            break
        left = [(at, feed_entry) for at, feed_entry in enumerate(page, position + 1) if not is_erased(feed_entry.entry)]
        position += len(page)
        if len(left) < len(page):
            reached["gaps"] = True
        if left:
            entries = [feed_entry.entry for _, feed_entry in left]
            bodies = [_body_of(feed_entry) for _, feed_entry in left]
            tables.append(event_table([at for at, _ in left], entries, bodies))
            size += sum(len(entry.body) for entry in entries)
            newest = max(newest, *(body.recorded_at for body in bodies))
        reached |= {
            "store": manifest.store or reached.get("store") or page[0].entry.id,
            "last_cursor": page[-2].cursor if len(page) > 1 else cursor,
            "last_id": page[-1].entry.id,
        }
        cursor = page[-1].cursor
    end = replace(manifest, position=position, cursor=cursor, recorded_at=newest, **reached)
    return Range(manifest.position + 1, joined(tables), end)


def _body_of(feed_entry: FeedEntry) -> RawBody:
    entry = feed_entry.entry
    if why := check_entry(entry):
        raise EventDamaged(entry.id, entry.thread, entry.sequence, why, feed_entry.cursor)
    return raw_body(entry, feed_entry.cursor)
