"""Segment's HTTP Tracking API: the bodies that its clients send, as events, and events as its messages.

The fields are described in Segment's specification, https://segment.com/docs/connections/spec/. What we make of each,
and where we had to decide, is told in docs/segment.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from threadline.kernel.errors import EventRejected, MalformedBody
from threadline.kernel.event import Event
from threadline.kernel.event_limits import check_event_count
from threadline.kernel.rejected import Envelope
from threadline.kernel.time import format_time
from threadline.wire.message import is_no_message, read_object, text_field, usable_time
from threadline.wire.rejection import Decoded, Rejection, rejection
from threadline.wire.scan import split_array
from threadline.wire.segment_event import BODY_FIELD, CALLS, KINDS, Request, event_of

__all__ = ["KINDS", "decode", "encode", "reread"]


class _Credential(msgspec.Struct):
    writeKey: Any = None  # noqa: N815 — Segment's name

    @property
    def write_key(self) -> str:
        """The key, if what stands in its place can be one."""
        return self.writeKey if type(self.writeKey) is str else ""


class _Envelope(_Credential, kw_only=True):
    batch: list[msgspec.Raw]
    context: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    integrations: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    sentAt: Any = msgspec.UNSET  # noqa: N815 — Segment's name
    historical: Any = None
    historical_migration: Any = None
    """PostHog's name for the same."""


class _Named(msgspec.Struct):
    messageId: Any = None  # noqa: N815 — Segment's name


_decode_named = msgspec.json.Decoder(_Named).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_credential = msgspec.json.Decoder(_Credential).decode


def decode(
    body: bytes,
    *,
    kind: str | None,
    source: str,
    workspace: str,
    received_at: int,
    fresh_key: Callable[[], str],
    pause: Callable[[], None] = lambda: None,
    marks: tuple[str, ...] = (),
) -> Decoded:
    """What a request says. ``kind`` is the call that its path names, one of `KINDS`, or None for a batch.

    Each message stands for itself: one that cannot be an event is answered with a `Rejection` in its place.
    ``fresh_key`` gives an idempotency key to a message that came without a messageId; such a message is recorded
    again if it is sent again. ``pause`` is called before each message of a batch, by a thread that gives way to others.
    ``marks`` are those of every event.
    Raises `MalformedBody` if no single message can be made out, and `LimitExceeded` for too many of them.
    """
    request = Request(source, workspace, received_at, fresh_key, Envelope(kind=kind or ""), marks)
    if kind is None:
        envelope, messages = _open(body)
        return Decoded(results=_batch(envelope, messages, request, pause), write_key=envelope.write_key)
    assert kind in KINDS, kind
    result = _result(0, body, request)
    if type(result) is Rejection and is_no_message(body, result.code):
        raise MalformedBody(result.message)
    return Decoded(results=[result], write_key=write_key(body))


def reread(
    message: bytes,
    envelope: Envelope,
    *,
    source: str,
    workspace: str,
    received_at: int,
    fresh_key: Callable[[], str],
) -> Event | Rejection:
    """What a message says that was rejected before, in the envelope in which it came."""
    return _result(0, message, Request(source, workspace, received_at, fresh_key, envelope))


def write_key(body: bytes) -> str:
    """The write key that stands beside the messages of a body, at a small part of the cost of reading them; or ""."""
    try:
        return _decode_credential(body).write_key
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        # One message with a NaN makes the whole body invalid.
        return _decode_credential(split_array(body, b"batch")[1]).write_key
    except (MalformedBody, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


# --- reading ---------------------------------------------------------------------------------------------------------


def _batch(
    envelope: _Envelope, messages: list[bytes], request: Request, pause: Callable[[], None]
) -> list[Event | Rejection]:
    # Where what all share is wrong, each message is rejected for it, so that all are kept and can be sent again.
    request, fault = _shared(envelope, request)
    results: list[Event | Rejection] = []
    for index, raw in enumerate(messages):
        pause()
        if fault is not None:
            results.append(rejection(index, raw, fault, _message_id(raw), request.envelope))
        else:
            results.append(_result(index, raw, request))
    return results


def _open(body: bytes) -> tuple[_Envelope, list[bytes]]:
    """The envelope and the messages in it, as they came."""
    try:
        envelope = _decode_envelope(body)
        check_event_count(len(envelope.batch))
        return envelope, list(map(bytes, envelope.batch))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    # One message with a NaN makes the whole body invalid. Its neighbours are found by their brackets.
    messages, rest = split_array(body, b"batch")
    try:
        return _decode_envelope(rest), messages
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MalformedBody(f"the body is not a batch: {reason}") from None


def _shared(envelope: _Envelope, request: Request) -> tuple[Request, EventRejected | None]:
    """The request with what its envelope says for all, and what is wrong with that, which is left out."""
    fault: EventRejected | None = None
    marks: list[str] = []
    shared: dict[str, Any] = {"historical": envelope.historical is True or envelope.historical_migration is True}
    if envelope.sentAt is not msgspec.UNSET:
        shared["sent"] = usable_time({"sentAt": envelope.sentAt}, "sentAt", marks)
    for name, given in (("context", envelope.context), ("integrations", envelope.integrations)):
        if given is not msgspec.UNSET:
            try:
                shared[name] = _shared_object(given, name)
            except EventRejected as refusal:
                fault = fault or refusal
    return request._replace(envelope=Envelope(**shared), marks=tuple(marks)), fault


def _shared_object(raw: msgspec.Raw, field: str) -> dict[str, Any] | None:
    if bytes(raw) == b"null":
        return None
    try:
        return read_object(bytes(raw))
    except EventRejected as refusal:
        raise EventRejected(refusal.code, f"`{field}` of the batch: {refusal}") from None


def _result(index: int, raw: bytes, request: Request) -> Event | Rejection:
    try:
        return event_of(read_object(raw), request)
    except EventRejected as refusal:
        return rejection(index, raw, refusal, _message_id(raw), request.envelope)


def _message_id(raw: bytes) -> str:
    """The key that the message has, or would have if it were an event."""
    try:
        # Past whatever is wrong with the rest: it may be too large, or hold a number that is.
        return text_field({"messageId": _decode_named(raw).messageId}, "messageId")
    except (EventRejected, ValueError, RecursionError):
        return ""


# --- writing ---------------------------------------------------------------------------------------------------------


def encode(event: Event) -> dict[str, Any]:
    """The event as a message of this API.

    For an event that came as such a message, the message itself, but for the write key: what a batch said for all its
    messages is part of it, and what Threadline added to the properties is not. Any other event becomes the message that
    would have made it, as far as the format has a place for what it says.
    """
    kind = event.type if event.type in CALLS else "track"
    rest = event.wire.get("segment")
    message: dict[str, Any] = {"type": kind, "messageId": event.key}
    if kind == "track":
        message["event"] = event.type
    elif kind in ("page", "screen") and event.object_ref:
        message["name"] = event.object_ref
    absent = event.wire.get("absent", ())
    if event.properties and kind != "alias":
        message[BODY_FIELD[kind]] = {
            name: value for name, value in event.properties.items() if f"properties.{name}" not in absent
        }
    if event.context:
        message["context"] = event.context
    if rest is None:
        return message | _foreign(event, kind)
    message |= rest
    for name in absent:
        if name not in rest:
            message.pop(name, None)
    return message


def _foreign(event: Event, kind: str) -> dict[str, Any]:
    """The fields of an event that did not come as a message of this API."""
    stamped = event.occurred_at if event.sent_time is None else event.sent_time
    fields: dict[str, Any] = {"timestamp": format_time(stamped)}
    if event.historical:
        fields["historical"] = True
    external: list[dict[str, str]] = []
    for identifier in event.identifiers:
        field = {"user_id": "userId", "anonymous_id": "anonymousId"}.get(identifier.kind)
        if field is not None and field not in fields:
            fields[field] = identifier.value
        else:
            entry = {"type": identifier.kind, "id": identifier.value, "collection": "users", "encoding": "none"}
            external.append(entry)
    if external:
        fields["context"] = {**event.context, "externalIds": external}
    if kind == "group":
        fields["groupId"] = event.object_ref
    elif kind == "alias":
        fields["previousId"] = event.object_ref
    return fields
