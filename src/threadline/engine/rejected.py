"""What could not be recorded as it came: rejected events and conflicting payloads, kept until someone decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from threadline.engine.packing import time_key
from threadline.engine.wishes import short_hash
from threadline.kernel.errors import Conflict, EventRejected, NotFound
from threadline.kernel.event import Event
from threadline.kernel.rejected import KEY_LENGTH_MAX, RejectedEntry, Status, StoredEntry
from threadline.kernel.store import Batch, Key, Put, Store

REJECTED = "rejected"
REJECTED_BY_TIME = "rejected_time"

ENTRY_BYTES_MAX = 160_000
"""An entry as it is stored; what is larger is kept as text, cut. No event of that size could ever be recorded."""
TEXT_LENGTH_MAX = 32_768
MESSAGE_MAX = 2_000

_SAID = ("properties", "context", "sent_time", "object_ref", "schema_version", "object_id", "historical")


def entry_of(event: Event, error: EventRejected, now: int) -> RejectedEntry:
    """The rejected-log entry of an event: all that there is of it, so that it can be recorded after all."""
    payload, form = _payload(event)
    # What the producer said names the entry, as it names the event: a retry brings other times and marks with it.
    said = [getattr(event, name) for name in ("type", "identifiers", *_SAID)]
    return RejectedEntry(
        id=short_hash(event.workspace, event.source, event.key, error.code, _shown(said)[:4_096]),
        workspace=event.workspace, source=_writable(event.source), code=error.code, message=str(error)[:MESSAGE_MAX],
        received_at=event.received_at or now, payload=payload, form=form, key=_writable(event.key[:KEY_LENGTH_MAX]),
    )  # fmt: skip


def _payload(event: Event) -> tuple[Any, str]:
    """The event by the names of its fields, or as text if JSON cannot hold it; and the form that this is."""
    form: dict[str, Any] = {name: getattr(event, name) for name in Event.__struct_fields__}
    form["identifiers"] = [[i.kind, i.value] for i in event.identifiers]
    try:
        msgspec.json.encode(form)
    except (ValueError, TypeError, RecursionError):
        return _text(form), "text"
    return form, "event"


def _text(value: Any) -> str:
    return _writable(_shown(value)[:TEXT_LENGTH_MAX])


def _writable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return "(nested too deeply to be shown)"


def conflict_puts(store: Store, event: Event, id: str, digest: int, now: int) -> list[Put]:
    """Keep the second payload that came under a key: the first is in the log, so both are kept, however often sent."""
    error = EventRejected("conflict", "the same key was used before with another payload; the first one stands")
    own = short_hash("conflict", id, str(digest))
    entry = msgspec.structs.replace(entry_of(event, error, now), id=own, event_id=id)
    known = store.get([Key(REJECTED, entry.workspace, entry.id)])[0]
    return _puts(entry) if known is None else []


def keep(store: Store, entries: Iterable[RejectedEntry]) -> None:
    """Write entries to the rejected log. The same rejection again is the same entry, so retries add nothing."""
    unique = {entry.id: entry for entry in entries}
    found = store.get([Key(REJECTED, e.workspace, e.id) for e in unique.values()])
    fresh = [e for e, item in zip(unique.values(), found, strict=True) if item is None]
    if fresh:
        store.commit([Batch(writes=_puts(entry)) for entry in fresh])


def _puts(entry: RejectedEntry) -> list[Put]:
    value = msgspec.json.encode(entry)
    if len(value) > ENTRY_BYTES_MAX:
        value = msgspec.json.encode(
            msgspec.structs.replace(entry, payload=_text(entry.payload), form="text", envelope=None)
        )
    at = Key(REJECTED_BY_TIME, entry.workspace, f"{time_key(entry.received_at)}.{entry.id}")
    return [Put(Key(REJECTED, entry.workspace, entry.id), value), Put(at, entry.id.encode())]


def read(store: Store, workspace: str, id: str) -> StoredEntry:
    """One entry as it stands. Raises `NotFound`."""
    item = store.get([Key(REJECTED, workspace, id)])[0] if id else None
    if item is None:
        raise NotFound(f"the rejected log has no entry {id[:64]!r}")
    return StoredEntry(msgspec.json.decode(item.value, type=RejectedEntry), item.version)


def settled(stored: StoredEntry, status: Status, resolution: str) -> tuple[RejectedEntry, Put]:
    """The entry with what was decided about it, and the write that says so if nobody else has decided meanwhile.

    Raises `Conflict` if something was decided already.
    """
    entry = stored.entry
    if entry.status != "open":
        raise Conflict(f"entry {entry.id} is {entry.status} already")
    decided = msgspec.structs.replace(entry, status=status, resolution=resolution)
    key = Key(REJECTED, entry.workspace, entry.id)
    return decided, Put(key, msgspec.json.encode(decided), stored.version)


def settle(store: Store, stored: StoredEntry, status: Status, resolution: str) -> RejectedEntry:
    """Write what was decided about an entry. Raises `Conflict` if somebody has decided before."""
    decided, put = settled(stored, status, resolution)
    if store.commit([Batch(writes=[put])])[0] is not None:
        raise overtaken(decided)
    return decided


def overtaken(entry: RejectedEntry) -> Conflict:
    """The refusal of a decision that came too late."""
    return Conflict(f"somebody else decided about entry {entry.id} at this moment; read it again")


def page(store: Store, workspace: str, before: str, limit: int) -> list[tuple[str, RejectedEntry]]:
    """Entries newest first with the cursor after each, from a cursor on ("": the newest)."""
    rows = store.query(REJECTED_BY_TIME, workspace, stop=before or None, limit=limit, reverse=True)
    items = store.get([Key(REJECTED, workspace, row.value.decode()) for row in rows])
    return [
        (row.key.sort, msgspec.json.decode(item.value, type=RejectedEntry))
        for row, item in zip(rows, items, strict=True)
        if item is not None
    ]


def clamped(event: Event, received_at: int) -> Event:
    """The event at the time of its receipt, marked: its own time lies too far ahead to be believed."""
    sent = event.sent_time if event.sent_time is not None else event.occurred_at
    return msgspec.structs.replace(event, occurred_at=received_at, sent_time=sent, marks=(*event.marks, "clamped"))
