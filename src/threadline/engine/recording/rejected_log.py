"""The rejected log: events that could not be recorded and conflicting payloads, kept until somebody decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from threadline.kernel.errors import Conflict, EventRejected
from threadline.kernel.event import Event
from threadline.kernel.ids import short_hash
from threadline.kernel.rejected import (
    KEY_LENGTH_MAX,
    RejectedEntry,
    Status,
    StoredEntry,
    as_text,
    keepable,
    shown,
    writable,
)
from threadline.kernel.store import Batch, Delete, Item, Key, Put, Store
from threadline.kernel.time import time_key

REJECTED = "rejected"
REJECTED_BY_TIME = "rejected_time"

ENTRY_BYTES_MAX = 160_000
"""An entry as it is stored; what is larger is kept as text, cut. No event of that size could ever be recorded."""
MESSAGE_MAX = 2_000

_CONTENT = ("properties", "context", "sent_time", "object_ref", "schema_version", "object_id", "historical")


def entry_of(event: Event, error: EventRejected, now: int) -> RejectedEntry:
    """The rejected-log entry of an event: everything about it, so that it can be recorded after all."""
    payload, form = _payload(event)
    # The id comes from the payload: a retry has other times and marks.
    content = [getattr(event, name) for name in ("type", "identifiers", *_CONTENT)]
    return RejectedEntry(
        id=short_hash(event.workspace, event.source, event.key, error.code, shown(content)),
        workspace=event.workspace, source=writable(event.source), code=error.code, message=str(error)[:MESSAGE_MAX],
        received_at=event.received_at or now, payload=payload, form=form, key=writable(event.key[:KEY_LENGTH_MAX]),
    )  # fmt: skip


def _payload(event: Event) -> tuple[Any, str]:
    """The event by the names of its fields, or as text if JSON cannot hold it; and the form that this is."""
    form: dict[str, Any] = {name: getattr(event, name) for name in Event.__struct_fields__}
    form["identifiers"] = [[i.kind, i.value] for i in event.identifiers]
    payload, whole = keepable(form)
    return payload, "event" if whole else "text"


def conflict_writes(store: Store, event: Event, id: str, digest: int, now: int) -> list[Put | Delete]:
    """The writes that log the second payload of a key; the first is in the log."""
    error = EventRejected("conflict", "the same key was used before with another payload; the first one stands")
    own = short_hash("conflict", id, str(digest))
    entry = msgspec.structs.replace(entry_of(event, error, now), id=own, event_id=id)
    return _writes(entry, store.get([_key(entry)])[0])


def keep(store: Store, entries: Iterable[RejectedEntry]) -> None:
    """Write entries to the rejected log.

    A retry adds nothing to an open entry, and opens a dismissed one again, at its new time. A resubmitted one stays
    settled: its event is in the log.
    """
    unique = {entry.id: entry for entry in entries}
    items = store.get([_key(entry) for entry in unique.values()])
    batches = [Batch(writes=_writes(entry, item)) for entry, item in zip(unique.values(), items, strict=True)]
    if batches := [batch for batch in batches if batch.writes]:
        # One that is refused was written by another process at this moment.
        store.commit(batches)


def _writes(entry: RejectedEntry, item: Item | None) -> list[Put | Delete]:
    """What keeps an entry where there is this one of its id already."""
    value = msgspec.json.encode(entry)
    if len(value) > ENTRY_BYTES_MAX:
        cut = msgspec.structs.replace(entry, payload=as_text(entry.payload), form="text", envelope=None)
        value = msgspec.json.encode(cut)
    writes: list[Put | Delete] = [
        Put(_key(entry), value, 0 if item is None else item.version),
        Put(_time_row(entry), entry.id.encode()),
    ]
    if item is None:
        return writes
    known = msgspec.json.decode(item.value, type=RejectedEntry)
    if known.status != "dismissed":
        return []
    return writes if _time_row(known) == _time_row(entry) else [*writes, Delete(_time_row(known))]


def _key(entry: RejectedEntry) -> Key:
    return Key(REJECTED, entry.workspace, entry.id)


def _time_row(entry: RejectedEntry) -> Key:
    return Key(REJECTED_BY_TIME, entry.workspace, f"{time_key(entry.received_at)}.{entry.id}")


def entry_keys(entry: RejectedEntry) -> tuple[Key, Key]:
    """Where an entry lies, and the row that leads to it by its time."""
    return _key(entry), _time_row(entry)


def settled(stored: StoredEntry, status: Status, resolution: str) -> tuple[RejectedEntry, Put]:
    """The entry with what was decided about it, and the write that says so if nobody else has decided meanwhile.

    Raises `Conflict` if something was decided already.
    """
    entry = stored.entry
    if entry.status != "open":
        raise Conflict(f"entry {entry.id} is {entry.status} already")
    decided = msgspec.structs.replace(entry, status=status, resolution=resolution)
    return decided, Put(_key(entry), msgspec.json.encode(decided), stored.version)


def settle(store: Store, stored: StoredEntry, status: Status, resolution: str) -> RejectedEntry:
    """Write what was decided about an entry. Raises `Conflict` if somebody has decided before."""
    decided, put = settled(stored, status, resolution)
    if store.commit([Batch(writes=[put])])[0] is not None:
        raise already_decided(decided)
    return decided


def already_decided(entry: RejectedEntry) -> Conflict:
    """The refusal of a decision that came too late."""
    return Conflict(f"somebody else decided about entry {entry.id} at this moment; read it again")
