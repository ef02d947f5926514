"""The rejected log as operations read it: entries newest first, one entry, and what was decided about it.

The engine writes the log; its layout is told in two table names and the fields of `RejectedEntry`, which a test holds
equal to the engine's own.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Instant, instant
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.operation import Context
from threadline.kernel.store import Batch, Item, Key, Put
from threadline.kernel.typed import prepared

REJECTED = "rejected"
REJECTED_BY_TIME = "rejected_time"


@prepared
class RejectedEntry(msgspec.Struct, kw_only=True):
    """An entry as it is stored."""

    id: str
    workspace: str
    source: str
    code: str
    message: str
    received_at: int
    payload: Any
    form: str = "event"
    event_id: str = ""
    status: str = "open"
    resolution: str = ""


class RejectedView(msgspec.Struct, kw_only=True):
    """Something that could not be recorded as it came, why, and what became of it since."""

    id: str
    source: str
    code: Annotated[
        str, Meta(description="Why, machine-readable; `conflict` means the key was used with another payload.")
    ]
    message: str
    received_at: Instant
    form: Annotated[str, Meta(description="How to read the payload: event, segment, cloudevents, table, text …")]
    payload: Annotated[Any, Meta(description="As it came.")]
    status: Annotated[str, Meta(description="open, resubmitted or dismissed.")]
    event_id: Annotated[str, Meta(description="For a conflict the event that holds the key.")] = ""
    resolution: Annotated[str, Meta(description="The event that came of a re-submission, or why it was dismissed.")] = (
        ""
    )


class Stored(NamedTuple):
    """An entry and the item that it was read from."""

    entry: RejectedEntry
    item: Item


def read_entry(context: Context, id: str) -> Stored:
    """One entry of the caller's workspace. Raises `NotFound`."""
    item = context.engine.store.get([Key(REJECTED, context.workspace, id)])[0] if id else None
    if item is None:
        raise NotFound(f"the rejected log has no entry {id[:64]!r}")
    return Stored(msgspec.json.decode(item.value, type=RejectedEntry), item)


def open_entry(context: Context, id: str) -> Stored:
    """The entry, if nothing was decided about it yet. Raises `NotFound` or `Conflict`."""
    stored = read_entry(context, id)
    if stored.entry.status != "open":
        raise Conflict(f"entry {id} is {stored.entry.status} already")
    return stored


def settle(context: Context, stored: Stored, status: str, resolution: str) -> RejectedEntry:
    """Write what was decided. Raises `Conflict` if somebody else decided meanwhile."""
    # Only these two fields change: whatever else the engine keeps in an entry stays as it is.
    kept = msgspec.json.decode(stored.item.value) | {"status": status, "resolution": resolution}
    put = Put(stored.item.key, msgspec.json.encode(kept), stored.item.version)
    entry = msgspec.structs.replace(stored.entry, status=status, resolution=resolution)
    if context.engine.store.commit([Batch(writes=[put])])[0] is not None:
        raise Conflict(f"somebody else decided about entry {entry.id} at this moment; read it again")
    return entry


def read_page(context: Context, before: str, limit: int) -> list[tuple[str, RejectedEntry]]:
    """Entries newest first with the cursor after each, from a cursor on ("": the newest)."""
    store = context.engine.store
    rows = store.query(REJECTED_BY_TIME, context.workspace, stop=before or None, limit=limit, reverse=True)
    items = store.get([Key(REJECTED, context.workspace, row.value.decode()) for row in rows])
    return [
        (row.key.sort, msgspec.json.decode(item.value, type=RejectedEntry))
        for row, item in zip(rows, items, strict=True)
        if item is not None
    ]


def rejected_view(entry: RejectedEntry) -> RejectedView:
    """The form in which an entry is read."""
    return RejectedView(
        id=entry.id, source=entry.source, code=entry.code, message=entry.message,
        received_at=instant(entry.received_at), form=entry.form, payload=entry.payload, status=entry.status,
        event_id=entry.event_id, resolution=entry.resolution,
    )  # fmt: skip
