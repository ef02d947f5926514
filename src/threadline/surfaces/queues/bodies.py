"""What the body of a message says: events in one of three forms, or where they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.foundation.events.recording import Draft, draft
from threadline.kernel.errors import EventRejected, LimitExceeded, MalformedBody
from threadline.kernel.event import Event
from threadline.kernel.event_limits import check_event_count
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import CLOUDEVENT_BYTES_MAX, REQUEST_BYTES_MAX
from threadline.kernel.rejected import Envelope, RejectedEntry
from threadline.surfaces.rejections import entry_of
from threadline.wire import cloudevents, segment
from threadline.wire.message import read_object
from threadline.wire.rejection import Rejection, rejection
from threadline.wire.segment import KINDS

POINTERS = frozenset(
    {"software.amazon.payloadoffloading.PayloadS3Pointer", "com.amazon.sqs.javamessaging.MessageS3Pointer"}
)
"""How the extended clients of SQS and SNS name a payload in S3: a list of this and of bucket and key."""
_ID_LENGTH_MAX = 64
_STRUCTURED = {"content-type": "application/cloudevents+json"}


class Way(NamedTuple):
    """The way in which a message came."""

    workspace: str
    source: str
    kinds: frozenset[str]
    """The kinds of identifiers that the subject of a CloudEvent may name."""
    received_at: int
    """When the queue got it, microseconds."""
    id: str
    """The queue's id of the message: what has no key of its own is the same event whenever the message comes again."""


class Pointer(NamedTuple):
    """Where the payload of a message is."""

    bucket: str
    key: str


class _Pointer(msgspec.Struct):
    s3BucketName: str  # noqa: N815 — Amazon's names
    s3Key: str  # noqa: N815


class _Form(msgspec.Struct):
    """The members that tell the forms apart. What else there is in them is looked at by their own readers."""

    batch: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    events: list[msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    specversion: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    identifiers: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    type: Any = None
    Type: Any = None
    TopicArn: Any = None
    Message: Any = None


_decode_form = msgspec.json.Decoder(_Form).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_pointer = msgspec.json.Decoder(tuple[str, _Pointer]).decode


def pointer_in(body: bytes) -> Pointer | None:
    """Where the payload is, if the body only says that."""
    if body.lstrip()[:1] != b"[" or b"S3Pointer" not in body[:200]:
        return None
    try:
        name, pointer = _decode_pointer(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return Pointer(pointer.s3BucketName, pointer.s3Key) if name in POINTERS else None


def unwrapped(body: bytes) -> bytes:
    """The message that a topic of SNS has put into a queue without raw delivery; any other body as it is."""
    form = _form(body)
    if form is not None and form.Type == "Notification" and form.TopicArn and isinstance(form.Message, str):
        return form.Message.encode()
    return body


def read(body: bytes, way: Way) -> list[Draft | RejectedEntry]:
    """The events of a body, and an entry of the rejected log in the place of what is none."""
    if len(body) > REQUEST_BYTES_MAX:
        return [_refused(body, way, "too_large", f"the message has {len(body)} bytes; at most {REQUEST_BYTES_MAX}")]
    try:
        return list(_read(body, way))
    except (MalformedBody, LimitExceeded) as error:
        code = "too_large" if isinstance(error, LimitExceeded) else "invalid_json"
        return [_refused(body, way, code, str(error))]


def refused(way: Way, code: str, message: str) -> list[Draft | RejectedEntry]:
    """The same for a message whose payload cannot be read."""
    return [_refused(b"", way, code, message)]


def _read(body: bytes, way: Way) -> Iterator[Draft | RejectedEntry]:
    if body.lstrip()[:1] == b"[":
        try:
            elements = _decode_list(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedBody(f"the message is no JSON: {error}") from None
        check_event_count(len(elements))
        for index, raw in enumerate(elements):
            yield _single(bytes(raw), way, index)
        return
    form = _form(body)
    if form is not None and form.batch is not msgspec.UNSET:
        yield from _segment_batch(body, way)
    elif form is not None and form.events is not msgspec.UNSET:
        check_event_count(len(form.events))
        for index, raw in enumerate(form.events):
            yield _native(bytes(raw), way, index)
    else:
        yield _single(body, way, 0)


def _single(raw: bytes, way: Way, index: int) -> Draft | RejectedEntry:
    """A single event, whose form its members tell."""
    form = _form(raw)
    if form is not None and form.specversion is not msgspec.UNSET:
        return _cloudevent(raw, way)
    if form is not None and form.type in KINDS:
        result = segment.reread(
            raw,
            Envelope(),
            source=way.source,
            workspace=way.workspace,
            received_at=way.received_at,
            fresh_key=lambda: _key(way, index),
        )
        return _result(result, way, "segment", index)
    if form is not None and form.identifiers is not msgspec.UNSET:
        return _native(raw, way, index)
    try:
        read_object(raw, CLOUDEVENT_BYTES_MAX)
    except EventRejected as error:
        return _refused(raw, way, error.code, str(error), index)
    text = "the message is no call of Segment's API, no CloudEvent and no event with `identifiers`"
    return _refused(raw, way, "unknown_type", text, index)


def _segment_batch(body: bytes, way: Way) -> Iterator[Draft | RejectedEntry]:
    places = iter(range(len(body)))
    decoded = segment.decode(
        body,
        kind=None,
        source=way.source,
        workspace=way.workspace,
        received_at=way.received_at,
        fresh_key=lambda: _key(way, next(places)),
    )
    for index, result in enumerate(decoded.results):
        yield _result(result, way, "segment", index)


def _cloudevent(raw: bytes, way: Way) -> Draft | RejectedEntry:
    decoded = cloudevents.decode(
        raw, _STRUCTURED, source=way.source, workspace=way.workspace, received_at=way.received_at, kinds=way.kinds
    )
    return _result(decoded.results[0], way, "cloudevents", 0)


def _native(raw: bytes, way: Way, index: int) -> Draft | RejectedEntry:
    try:
        value = read_object(raw, CLOUDEVENT_BYTES_MAX)
    except EventRejected as error:
        return _refused(raw, way, error.code, str(error), index)
    return draft(
        value,
        workspace=way.workspace,
        source=way.source,
        source_type="external",
        received_at=way.received_at,
        label=f"events[{index}]",
    )


def _result(result: Event | Rejection, way: Way, form: str, index: int) -> Draft | RejectedEntry:
    return _entry(result, way, form, index) if isinstance(result, Rejection) else Draft(result)


def _refused(raw: bytes, way: Way, code: str, message: str, index: int = 0) -> RejectedEntry:
    return _entry(rejection(index, raw, EventRejected(code, message)), way, "text", index)


def _entry(refusal: Rejection, way: Way, form: str, index: int) -> RejectedEntry:
    # By the message's id, so that what is delivered again is the same entry.
    id = short_hash(way.workspace, way.source, refusal.code, refusal.key or _key(way, index), str(index))
    return entry_of(refusal, id, workspace=way.workspace, source=way.source, form=form, received_at=way.received_at)


def _key(way: Way, index: int) -> str:
    id = way.id if len(way.id) <= _ID_LENGTH_MAX else short_hash(way.id)
    return f"message/{id}/{index}"


def _form(body: bytes) -> _Form | None:
    try:
        return _decode_form(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
