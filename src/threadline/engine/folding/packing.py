"""The stored form of events and people; the only place that knows these layouts."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from threadline.kernel.event import Event, Recorded
from threadline.kernel.store import LogEntry


class _Body(msgspec.Struct, array_like=True, frozen=True, gc=False):
    event: Event
    recorded_at: int
    cause: str = ""


# JSON, not MessagePack: the log outlives this code, and anything can read JSON.
_json = msgspec.json.Encoder()
_sorted = msgspec.msgpack.Encoder(order="sorted")
_body = msgspec.json.Decoder(_Body)
_event = msgspec.json.Decoder(Event)
_pack = msgspec.msgpack.Encoder()
_unpack = msgspec.msgpack.Decoder()


def encode_event(event: Event) -> bytes:
    """The bytes of an event in the log. Raises ValueError or TypeError for what JSON cannot hold."""
    return _json.encode(event)


def decode_event(encoded: bytes) -> Event:
    """The event as it is read from the log. Raises `msgspec.ValidationError` if it cannot be read."""
    return _event.decode(encoded)


def body_of(encoded: bytes, recorded_at: int, cause: str = "") -> bytes:
    """The bytes of an encoded event in the log: `_Body`, without encoding the event again."""
    return b"[%b,%d,%b]" % (encoded, recorded_at, _json.encode(cause))


def body_bytes(encoded: bytes, recorded_at: int, cause: str) -> int:
    """The length of `body_of`."""
    return len(encoded) + len(str(recorded_at)) + len(_json.encode(cause)) + len(b"[,,]")


def unpack_event(entry: LogEntry) -> Recorded:
    """The recorded event of a log entry."""
    body = _body.decode(entry.body)
    return Recorded(body.event, entry.id, entry.thread, entry.sequence, body.recorded_at, body.cause)


def payload_digest(event: Event) -> int:
    """A signed 64-bit hash of the payload: equal for a retry, different for another payload.

    What transport and correction add is left out: times of receipt and of sending, the corrected time, and the
    wire's own fields. Raises ValueError, TypeError or OverflowError for what a state could not hold either, such as
    integers beyond 64 bits: that is why it is MessagePack, like states, and not JSON, like the log.
    """
    payload = (event.type, event.identifiers, event.properties, event.context, event.sent_time, event.object_ref)
    content = _sorted.encode((*payload, event.object_id) if event.object_id else payload)
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)


def pack(value: Any) -> bytes:
    """Plain data as MessagePack."""
    return _pack.encode(value)


def unpack(data: bytes) -> Any:
    """What `pack` wrote."""
    return _unpack.decode(data)


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
