"""CloudEvents 1.0 over HTTP: structured, batched and binary requests, as events, and events as structured ones.

Written after the specification's core, JSON format and HTTP binding, version 1.0.2
(https://github.com/cloudevents/spec). What we make of each attribute is told in docs/cloudevents.md.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from threadline.kernel.errors import EventRejected, MalformedBody
from threadline.kernel.event import Event
from threadline.kernel.event_limits import check_event_count
from threadline.kernel.limits import CLOUDEVENT_BYTES_MAX
from threadline.kernel.time import format_time
from threadline.wire.cloudevents_event import (
    EXTENSION_NAME,
    PERSON_KINDS,
    Request,
    check_attribute,
    event_of,
    extension_value,
    is_json,
    key_of,
)
from threadline.wire.message import BLANKS, is_no_message, read_json, read_object, split_array
from threadline.wire.rejection import Decoded, Rejection, rejection

__all__ = ["decode", "encode", "is_readable", "is_structured"]

_BATCH = "application/cloudevents-batch"
_STRUCTURED = "application/cloudevents"
_FORMATS = frozenset({_STRUCTURED, f"{_STRUCTURED}+json", _BATCH, f"{_BATCH}+json"})
"""What is read here; without a format named it is JSON."""
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")
_QUOTED_PAIR = re.compile(r"\\(.)", re.DOTALL)

_NO_HEADERS = frozenset({"data", "data_base64", "datacontenttype"})

_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode_json = msgspec.json.Encoder().encode


def decode(
    body: bytes,
    headers: Mapping[str, str],
    *,
    source: str,
    workspace: str,
    received_at: int,
    kinds: frozenset[str] = PERSON_KINDS,
    pause: Callable[[], None] = lambda: None,
) -> Decoded:
    """What a request says. ``headers`` have names in lower case and values as ISO-8859-1, as servers hand them over.

    The content type decides on the mode. Each event of a batch stands for itself: one that is not valid is answered
    with a `Rejection` in its place. ``kinds`` are those that a subject such as ``email:a@b.c`` names. ``pause`` is
    called before each event of a batch, by a thread that gives way to others.
    Raises `MalformedBody` if no single event can be made out, or if the format is not JSON, and `LimitExceeded` for too
    many events.
    """
    request = Request(source, workspace, received_at, kinds)
    content_type = headers.get("content-type", "").strip()
    if is_structured(content_type):
        _check_format(content_type)
        batch = _media_type(content_type).startswith(_BATCH)
        return Decoded(results=_batch(body, request, pause) if batch else [_structured(body, request)])
    return Decoded(results=[_binary(body, content_type, headers, request)])


def is_structured(content_type: str) -> bool:
    """Whether a body holds whole events, in whatever format, and not the data of one (HTTP binding, 3)."""
    return _media_type(content_type).startswith(_STRUCTURED)


def is_readable(content_type: str) -> bool:
    """Whether the format of whole events is one that is read here."""
    return _media_type(content_type) in _FORMATS


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _check_format(content_type: str) -> None:
    if not is_readable(content_type):
        raise MalformedBody(f"{content_type[:100]} is a format that is not read here; send {_STRUCTURED}+json")
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", content_type, re.IGNORECASE)
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise MalformedBody(f"the event format is JSON, which is UTF-8, not {charset[1]}")


# --- the three modes -------------------------------------------------------------------------------------------------


def _structured(body: bytes, request: Request) -> Event | Rejection:
    result = _result(0, body, request)
    if type(result) is Rejection and is_no_message(body, result.code):
        raise MalformedBody(result.message)
    return result


def _batch(body: bytes, request: Request, pause: Callable[[], None]) -> list[Event | Rejection]:
    results = []
    for index, raw in enumerate(_elements(body)):
        pause()
        results.append(_result(index, raw, request))
    return results


def _elements(body: bytes) -> list[bytes]:
    try:
        raws = _decode_array(body)
        check_event_count(len(raws))
        return [bytes(raw) for raw in raws]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    # One event with a NaN makes the whole body invalid. Its neighbours are found by their brackets.
    elements, rest = split_array(body, None)
    if rest.strip(BLANKS) != b"[]":
        raise MalformedBody(f"the body is not a batch: {reason}")
    return elements


def _result(index: int, raw: bytes, request: Request) -> Event | Rejection:
    try:
        attributes = read_object(raw, CLOUDEVENT_BYTES_MAX)
        return event_of(attributes, request)
    except EventRejected as refusal:
        return rejection(index, raw, refusal, _key(raw))


class _Named(msgspec.Struct):
    """What names an event, read past whatever is wrong with the rest."""

    source: Any = None
    id: Any = None


_decode_named = msgspec.json.Decoder(_Named).decode


def _key(raw: bytes) -> str:
    try:
        return _key_in(msgspec.structs.asdict(_decode_named(raw)))
    except (ValueError, RecursionError):
        return ""


def _key_in(attributes: Mapping[str, Any]) -> str:
    """The key that the event has, or would have if it were one; without a source that is the id alone."""
    source, id = attributes.get("source"), attributes.get("id")
    if type(id) is not str or not id:
        return ""
    return key_of(source, id) if type(source) is str and source else id


def _binary(body: bytes, content_type: str, headers: Mapping[str, str], request: Request) -> Event | Rejection:
    """An event in the headers, its data in the body. If it is rejected, it is kept in the structured form."""
    attributes: dict[str, Any] = {}
    fault: EventRejected | None = None
    for name, value in headers.items():
        if name.startswith("ce-"):
            text = _header_value(name[3:], value)
            if attributes.setdefault(name[3:], text) != text:
                fault = EventRejected("invalid_attribute", f"`{name}` came more than once, with different values")
    if attributes.keys() & _NO_HEADERS:
        text = "`datacontenttype` is the Content-Type and `data` the body; neither is a header of its own"
        fault = EventRejected("invalid_attribute", text)
    elif content_type:
        attributes["datacontenttype"] = content_type
    try:
        data = _binary_data(body, content_type)
    except EventRejected as refusal:
        fault, data = fault or refusal, {"data_base64": b64encode(body[:CLOUDEVENT_BYTES_MAX]).decode()}
    # A copy, because what finds its place in the event is taken out.
    message = {**attributes, **data}
    try:
        if fault is not None:
            raise fault
        return event_of(dict(message), request)
    except EventRejected as refusal:
        return rejection(0, _encode_json(message), refusal, _key_in(attributes))


def _header_value(name: str, value: str) -> str:
    """An attribute out of a header: first unquoted (RFC 7230, 3.2.6), then percent-decoded once (RFC 3986, 2.4).

    The SDK for JavaScript encodes nothing: what cannot be the attribute once it is decoded is taken as it stands.
    """
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = _QUOTED_PAIR.sub(r"\1", value[1:-1])
    try:
        decoded = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), value.encode("latin-1")).decode()
        check_attribute(name, decoded)
        return decoded
    except (UnicodeError, EventRejected):
        return value


def _binary_data(body: bytes, content_type: str) -> dict[str, Any]:
    """The member of the structured form that says the same as the body."""
    if not body:
        return {}
    if len(body) > CLOUDEVENT_BYTES_MAX:
        raise EventRejected("too_large", f"the data has {len(body)} bytes; at most {CLOUDEVENT_BYTES_MAX} are taken")
    text = content_type.lower().startswith("text/")
    if is_json(content_type):
        try:
            return {"data": read_json(body, CLOUDEVENT_BYTES_MAX)}
        except EventRejected as refusal:
            # The SDK for JavaScript sends text and bytes as they are, and calls them JSON.
            text = refusal.code == "invalid_json" and body.lstrip()[:1] not in (b"{", b"[")
            if not text:
                code = "invalid_data" if refusal.code == "invalid_json" else refusal.code
                raise EventRejected(code, f"the data is not what its content type says: {refusal}") from None
    if text:
        try:
            return {"data": body.decode()}
        except UnicodeDecodeError:
            return {"data_base64": b64encode(body).decode()}
    return {"data_base64": b64encode(body).decode()}


# --- writing ---------------------------------------------------------------------------------------------------------


def encode(event: Event) -> dict[str, Any]:
    """The event in the structured JSON format.

    For an event that came as a CloudEvent that is what it said, in whichever mode it came. Any other event becomes one
    that means the same, as far as the format has a place for what it says.
    """
    stored = event.wire.get("cloudevent")
    message: dict[str, Any] = {"specversion": "1.0", "type": event.type}
    if event.schema_version:
        message["dataschema"] = event.schema_version
    if stored is None:
        return message | _foreign(event)
    # Events that the log has from before extensions stayed in the message have them in the context only.
    message |= {**event.context, **stored}
    form = event.wire.get("data")
    if form == "value":
        message["data"] = event.properties["data"]
    elif form == "base64":
        message["data_base64"] = event.properties["data_base64"]
    elif form is None:
        message["data"] = event.properties
    return message


def _foreign(event: Event) -> dict[str, Any]:
    """The members of an event that did not come as a CloudEvent."""
    at = event.occurred_at if event.sent_time is None else event.sent_time
    members: dict[str, Any] = {"id": event.key, "source": "/" + event.source, "time": format_time(at)}
    if event.identifiers:
        members["subject"] = str(event.identifiers[0])
    if event.historical:
        members["historical"] = True
    for name, value in event.context.items():
        if EXTENSION_NAME.fullmatch(name) and name not in members and extension_value(value):
            members[name] = value
    if event.properties:
        members["data"] = event.properties
    return members
