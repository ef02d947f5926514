"""What became of each message of a request: an `Event`, or a `Rejection` that says why not."""

from __future__ import annotations

import re

import msgspec

from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event
from threadline.kernel.limits import CLOUDEVENT_BYTES_MAX
from threadline.kernel.rejected import Envelope

CODES = {
    "invalid_attribute": "a CloudEvents attribute has a name or a value that the specification does not allow",
    "invalid_data": "the data of a CloudEvent is not what its content type says",
    "invalid_identifier": "an identifier has a kind that is empty, too long, or holds a colon or control characters",
    "invalid_json": "the message is not JSON: a syntax error, NaN, bytes that are not UTF-8, a lone surrogate",
    "invalid_key": "the idempotency key is missing, or that of an `Event` in Python is longer than 100 characters",
    "invalid_time": "a time is not an RFC 3339 instant, or the instant is not between the years 1 and 9999",
    "invalid_type": "the event's type is missing, or longer than 200 characters",
    "invalid_value": "a cell of a table does not have the form that the mapping asks for",
    "missing_attribute": "a CloudEvent lacks `id`, `source`, `specversion` or `type`",
    "missing_column": "a row of a table lacks a column, or its cell is empty, and the mapping needs it",
    "no_event_name": "a track call has no `event`, or a row no type",
    "no_group_id": "a group call has no `groupId`",
    "no_identifier": "nothing in the message says whose event it is",
    "no_previous_id": "an alias call has no `previousId`",
    "no_user_id": "an alias call has no `userId`",
    "not_an_object": "the message is JSON, but not an object",
    "number_out_of_range": "a number is too large: a double must hold a fraction, 64 bits an integer",
    "payload_missing": "a message of a queue names a payload in S3 that is not there, or a bucket that is not read",
    "reserved_type": "names that start with `threadline.` are Threadline's own",
    "too_deep": "the JSON is nested deeper than 64 levels",
    "too_large": "the message is larger than one may be",
    "too_many_identifiers": "the event has more than 16 identifiers",
    "unknown_type": "the message's `type` is none of identify, track, page, screen, group, alias",
    "unsupported_specversion": "the CloudEvent's `specversion` is not 1.0",
    "wrong_type": "a field has a value of the wrong type, such as a number where an object belongs",
}
"""Every code of a rejection and what it means, as the documentation tells it."""

RAW_BYTES_MAX = CLOUDEVENT_BYTES_MAX
"""A rejected message is kept up to this many bytes; what is longer is cut and can never be accepted anyway."""


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """Why one message of a request did not become an event. Its neighbours are not touched by it."""

    index: int
    """Its place in the request, from 0."""
    key: str
    """The key that the event would have, such as the messageId; empty if it has none that could be read."""
    code: str
    """One of `CODES`."""
    message: str
    raw: bytes
    """The message as it came, but for the write key, to be corrected and sent again; cut at `RAW_BYTES_MAX`."""
    envelope: Envelope | None = None
    """What the request said for all its messages."""


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """What a request's body says."""

    results: list[Event | Rejection]
    """One for each message, in the order of the messages."""
    write_key: str = ""
    """The credential that came in the body; empty if there was none."""


MASK = "***"
"""What stands where a secret was."""
_WRITE_KEY = re.compile(
    rb"""(writeKey\\*["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|\\+"[^"\\]*|'[^']*'?|[^\s"',;&}\]]+)""", re.DOTALL
)
"""A write key and what stands before it: in JSON, in JSON within a text of JSON, in a form, or in what is like them."""


def rejection(
    index: int, raw: bytes, refusal: EventRejected, key: str = "", envelope: Envelope | None = None
) -> Rejection:
    """The rejection of a message for what `refusal` says."""
    assert refusal.code in CODES, f"{refusal.code} is not documented in CODES"
    return Rejection(index=index, key=key, code=refusal.code, message=str(refusal), raw=masked(raw), envelope=envelope)


def masked(raw: bytes) -> bytes:
    """What is kept of a message: as it came, up to a limit, but without the credential that came in it.

    A write key has no place where others read. What is no JSON object keeps its place, with a mask on it.
    """
    try:
        message = msgspec.json.decode(raw)
        if type(message) is dict and "writeKey" in message:
            del message["writeKey"]
            return msgspec.json.encode(message)[:RAW_BYTES_MAX]
        if type(message) is dict:
            return raw[:RAW_BYTES_MAX]
    except (ValueError, OverflowError, RecursionError):
        pass
    # Before it is cut, so that no half of a secret is left at the end.
    return _WRITE_KEY.sub(rb'\1"%s"' % MASK.encode(), raw)[:RAW_BYTES_MAX]
