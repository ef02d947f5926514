"""The stored form of events and people; the only place that knows these layouts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any
from zlib import crc32

import msgspec

from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import EventDamaged, InvalidValue
from threadline.kernel.event import CLAMPED, Event, Recorded, event_id
from threadline.kernel.store import LogEntry, erased


class _Body(msgspec.Struct, array_like=True, frozen=True, gc=False):
    event: Event
    recorded_at: int
    cause: str = ""
    checksum: int | None = None
    """See `log_entry`; None in entries of versions that wrote none."""


# JSON, not MessagePack: the log outlives this code, and anything can read JSON.
_json = msgspec.json.Encoder()
_sorted = msgspec.msgpack.Encoder(order="sorted")
_body = msgspec.json.Decoder(_Body)


encode_event: Callable[[Event], bytes] = _json.encode
"""The bytes of an event in the log. Raises ValueError or TypeError for what JSON cannot hold."""


decode_event: Callable[[bytes], Event] = msgspec.json.Decoder(Event).decode
"""The event as it is read from the log. Raises `msgspec.ValidationError` if it cannot be read."""


def log_entry(recorded: Recorded, encoded: bytes, digest: int) -> LogEntry:
    """The log entry of an event that `encode_event` has encoded: its body is `_Body`, without encoding the event again.

    The body ends with a CRC-32 of all that precedes it and of the other columns: no single flipped bit of an entry goes
    unnoticed by `check_entry`.
    """
    event, thread, sequence, id = recorded.event, recorded.thread, recorded.sequence, recorded.id
    occurred_at, type = event.occurred_at, event.type
    content = b"".join((b"[", encoded, b",%d," % recorded.recorded_at, _json.encode(recorded.cause)))
    columns = f"{thread} {sequence} {occurred_at} {id} {digest} {type}".encode()
    body = content + b",%d]" % crc32(columns, crc32(content))
    return LogEntry(thread, sequence, occurred_at, type, id, digest, body)


def body_bytes_max(encoded: bytes, recorded_at: int, cause: str) -> int:
    """The length of the body of `log_entry`, with the longest checksum."""
    return len(encoded) + len(str(recorded_at)) + len(_json.encode(cause)) + len(b"[,,,4294967295]")


def check_entry(entry: LogEntry) -> str:
    """What is wrong with a log entry as it was read; empty for one that is as it was written.

    An entry of a version that wrote no checksum is compared with what can be derived from its event: id, type, time and
    digest.
    """
    thread, sequence, occurred_at, type_name, id, digest, body = entry
    if type(body) is not bytes:
        return "its body is of another type"  # SQLite keeps types with values, where a bit can flip too
    if not body:
        return "" if entry == erased(id) else "its body is gone"
    content, _, end = body.rpartition(b",")
    columns = f"{thread} {sequence} {occurred_at} {id} {digest} {type_name}"
    return "" if end == b"%d]" % crc32(columns.encode(), crc32(content)) else _difference(entry)


def _difference(entry: LogEntry) -> str:
    try:
        body = _body.decode(entry.body)
        digest = payload_digest(body.event)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError) as error:
        return f"its body cannot be read: {error}"
    event = body.event
    if body.checksum is not None:
        return "its checksum is not that of its bytes"
    if event_id(event.workspace, event.source, event.key) != entry.id:
        return "its id is not that of its event"
    if (event.type, event.occurred_at) != (entry.type, entry.occurred_at):
        return "its type or time is not that of its event"
    # Python callers may have recorded objects, such as a `datetime`, that are text in the log; and the digest is of the
    # time as it was sent, in whose place one that cannot be believed was given another.
    if digest != entry.digest and event.source_type != "direct" and CLAMPED not in event.marks:
        return "its digest is not that of its payload"
    return ""


def unpack_event(entry: LogEntry) -> Recorded:
    """The recorded event of a log entry. Raises `EventDamaged` for a body that cannot be read."""
    thread, sequence, _, _, id, _, encoded = entry
    try:
        body = _body.decode(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        why = f"its body cannot be read: {error}"
        raise EventDamaged(id, thread, sequence, why) from None
    return Recorded(body.event, id, thread, sequence, body.recorded_at, body.cause)


def checked_event(entry: LogEntry, position: str = "") -> Recorded:
    """As `unpack_event`, but an entry that is not as it was written is refused even if it can be read.

    ``position``: the cursor of the feed behind it, where that is known.
    """
    if why := check_entry(entry):
        raise EventDamaged(entry.id, entry.thread, entry.sequence, why, position)
    return unpack_event(entry)


def payload_digest(event: Event) -> int:
    """A signed 64-bit hash of the payload: equal for a retry, different for another payload.

    What transport and correction add is left out: times of receipt and of sending, the corrected time, and the
    wire's own fields. Raises ValueError, TypeError or OverflowError for what a state could not hold either, such as
    integers beyond 64 bits: that is why it is MessagePack, like states, and not JSON, like the log.
    """
    content = _sorted.encode(_payload(event))
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)


def same_payload(first: Event, second: Event) -> bool:
    """Whether two events have one payload, however its numbers were written: 10.0 is 10, 1e2 is 100 and -0.0 is 0.

    `payload_digest` tells these apart, and the log has its digests for ever, so that events are compared where it does.
    """
    try:
        forms = {canonical_json(msgspec.to_builtins(_payload(event))) for event in (first, second)}
    except InvalidValue:
        return False
    return len(forms) == 1


def _payload(event: Event) -> tuple[Any, ...]:
    payload = (event.type, event.identifiers, event.properties, event.context, event.sent_time, event.object_ref)
    return (*payload, event.object_id) if event.object_id else payload


pack: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
"""Plain data as MessagePack."""
unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode
"""What `pack` wrote."""


def nested_beyond(value: Any, depth_max: int) -> bool:
    """Whether lists and dicts are nested more than this many levels deep. Does not recurse."""
    level = [value]
    for _ in range(depth_max + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list | tuple)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
