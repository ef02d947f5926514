"""The columns of the files, and how an event becomes a row and a row the event again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from threadline.engine.folding.packing import decode_event
from threadline.kernel.errors import EventDamaged
from threadline.kernel.event import Recorded
from threadline.kernel.store import LogEntry
from threadline.kernel.time import from_datetime
from threadline.wire.arrow import arrow

pa = arrow("writing", "lake")

_INSTANT = pa.timestamp("us", "UTC")
_TYPE = pa.dictionary(pa.int32(), pa.string())
RAW = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("id", "workspace", "thread", "person")),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("type", _TYPE, nullable=False),
        *(pa.field(name, _INSTANT, nullable=False) for name in ("occurred_at", "received_at", "recorded_at")),
        pa.field("sent_time", _INSTANT),
        *(pa.field(name, pa.string(), nullable=False) for name in ("key", "source", "source_type", "identifiers")),
        *(pa.field(name, pa.string(), nullable=False) for name in ("properties", "context", "wire", "cause")),
        pa.field("marks", pa.list_(pa.string()), nullable=False),
        pa.field("historical", pa.bool_(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("schema_version", "object_id", "object_ref")),
    ]
)
"""The columns that every file of events has, in this order; typed columns ``p_…`` follow."""

IDENTITIES = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("workspace", "thread", "person")),
        pa.field("position", pa.int64(), nullable=False),
    ]
)
"""Whose a thread is as of a position; of several rows of a thread the one with the highest position counts."""


class RawEvent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An `Event` as it lies in the log, with its JSON left as it is: nothing is parsed and written again."""

    type: str
    identifiers: msgspec.Raw
    occurred_at: int
    key: str
    source: str = "direct"
    source_type: str = "direct"
    workspace: str = "default"
    properties: msgspec.Raw = msgspec.Raw(b"{}")
    context: msgspec.Raw = msgspec.Raw(b"{}")
    received_at: int = 0
    sent_time: int | None = None
    marks: tuple[str, ...] = ()
    historical: bool = False
    schema_version: str = ""
    object_id: str = ""
    object_ref: str = ""
    wire: msgspec.Raw = msgspec.Raw(b"{}")


class RawBody(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The body of a `LogEntry`; see `engine/folding/packing.py`."""

    event: RawEvent
    recorded_at: int
    cause: str = ""


_body = msgspec.json.Decoder(RawBody)
_json = msgspec.json.Encoder()


def raw_body(entry: LogEntry, cursor: str = "") -> RawBody:
    """The body of an entry of the log. Raises `EventDamaged`."""
    try:
        return _body.decode(entry.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        why = f"its body cannot be read: {error}"
        raise EventDamaged(entry.id, entry.thread, entry.sequence, why, cursor) from None


def recorded_of(row: Mapping[str, Any]) -> Recorded:
    """The event of a row, such as one of ``table.to_pylist()`` or of a query: equal to what is stored."""
    sent = row["sent_time"]
    values = [
        _json.encode(row["type"]),
        _bytes(row["identifiers"]),
        b"%d" % from_datetime(row["occurred_at"]),
        *(_json.encode(row[name]) for name in ("key", "source", "source_type", "workspace")),
        _bytes(row["properties"]),
        _bytes(row["context"]),
        b"%d" % from_datetime(row["received_at"]),
        b"null" if sent is None else b"%d" % from_datetime(sent),
        *(_json.encode(row[name]) for name in ("marks", "historical", "schema_version", "object_id", "object_ref")),
        _bytes(row["wire"]),
    ]
    event = decode_event(b"[%b]" % b",".join(values))
    at = from_datetime(row["recorded_at"])
    return Recorded(event, row["id"], row["thread"], row["sequence"], at, row["cause"])


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
