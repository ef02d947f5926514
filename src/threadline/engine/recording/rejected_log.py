"""The rejected log: events that could not be recorded and conflicting payloads, kept until somebody decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from threadline.engine.recording.validation import FENCED, RecordRequest
from threadline.kernel.errors import Conflict, EventRejected, NotFound
from threadline.kernel.event import Event, Receipt, event_id
from threadline.kernel.ids import short_hash
from threadline.kernel.rejected import (
    KEY_LENGTH_MAX,
    Reader,
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


class RejectedLog:
    """The rejected log of one store as its readers see it: entries, corrections, and other decisions about them."""

    def __init__(
        self, store: Store, record: Callable[[Sequence[RecordRequest]], list[Receipt]], readers: Mapping[str, Reader]
    ) -> None:
        self._store = store
        self._record = record
        self.readers = readers
        """Form of a rejected payload -> how to read it again."""

    def add(self, entries: Iterable[RejectedEntry]) -> None:
        """Keep what could not even be read as an event."""
        keep(self._store, entries)

    def entry(self, workspace: str, id: str) -> StoredEntry:
        """One entry as it is now. Raises `NotFound`."""
        item = self._store.get([Key(REJECTED, workspace, id)])[0] if id else None
        if item is None:
            raise NotFound(f"the rejected log has no entry {id[:64]!r}")
        return StoredEntry(msgspec.json.decode(item.value, type=RejectedEntry), item.version)

    def page(self, workspace: str, before: str = "", limit: int = 100) -> list[tuple[str, RejectedEntry]]:
        """Entries newest first with the cursor after each, from a cursor on ("": the newest)."""
        rows = self._store.query(REJECTED_BY_TIME, workspace, stop=before or None, limit=limit, reverse=True)
        items = self._store.get([Key(REJECTED, workspace, row.value.decode()) for row in rows])
        return [
            (row.key.sort, msgspec.json.decode(item.value, type=RejectedEntry))
            for row, item in zip(rows, items, strict=True)
            if item is not None
        ]

    def dismiss(self, stored: StoredEntry, reason: str) -> RejectedEntry:
        """Settle an entry without recording anything. Raises `Conflict` if somebody has decided about it."""
        return _settle(self._store, stored, "dismissed", reason)

    def resubmit(
        self, stored: StoredEntry, event: Event, *, expected: int | None = None
    ) -> tuple[Receipt, RejectedEntry]:
        """Record a correction: its receipt, and the entry, settled if the event is in the log, else as it was.

        Both are one commit under the version at which the entry was read, so that of several who decide about it at
        once only one is heard, and the others record nothing. Raises `Conflict` for those, and for an entry that is
        settled.
        """
        id = event_id(event.workspace, event.source, event.key)
        decided, put = _settled(stored, "resubmitted", id)
        receipt = self._record([RecordRequest(event, expected=expected, writes=(put,))])[0]
        if receipt.code == FENCED:
            raise _already_decided(stored.entry)
        if receipt.status == "accepted":
            return receipt, decided
        if receipt.status == "duplicate":
            # The log has the event already, and nothing was committed: only the entry is left to be settled.
            return receipt, _settle(self._store, stored, "resubmitted", receipt.id)
        return receipt, stored.entry


def _settled(stored: StoredEntry, status: Status, resolution: str) -> tuple[RejectedEntry, Put]:
    """The entry with what was decided about it, and the write that says so if nobody else has decided meanwhile.

    Raises `Conflict` if something was decided already.
    """
    entry = stored.entry
    if entry.status != "open":
        raise Conflict(f"entry {entry.id} is {entry.status} already")
    decided = msgspec.structs.replace(entry, status=status, resolution=resolution)
    return decided, Put(_key(entry), msgspec.json.encode(decided), stored.version)


def _settle(store: Store, stored: StoredEntry, status: Status, resolution: str) -> RejectedEntry:
    """Write what was decided about an entry. Raises `Conflict` if somebody has decided before."""
    decided, put = _settled(stored, status, resolution)
    if store.commit([Batch(writes=[put])])[0] is not None:
        raise _already_decided(decided)
    return decided


def _already_decided(entry: RejectedEntry) -> Conflict:
    """The refusal of a decision that came too late."""
    return Conflict(f"somebody else decided about entry {entry.id} at this moment; read it again")
