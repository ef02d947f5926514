"""Segment's HTTP Tracking API: the bodies that its clients send, as events, and events as its messages.

The fields are described in Segment's specification, https://segment.com/docs/connections/spec/. What we make of each,
and where we had to decide, is told in docs/segment.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.address import normal_address
from threadline.kernel.errors import EventRejected, MalformedBody
from threadline.kernel.event import Event, Identifier, key_of_name
from threadline.kernel.event_limits import check_event_count, check_kind, check_type
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX
from threadline.kernel.rejected import Envelope
from threadline.kernel.time import format_time
from threadline.wire.message import (
    check_identifiers,
    is_no_message,
    json_type,
    place_in_time,
    read_object,
    split_array,
    text_field,
    usable_time,
    wrong_type,
)
from threadline.wire.rejection import Decoded, Rejection, rejection


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


# --- one message --------------------------------------------------------------------------------------

KINDS = frozenset({"identify", "track", "page", "screen", "group", "alias"})
"""The calls of the API. All but track are types of events by their own name."""

CALLS = KINDS - {"track"}
BODY_FIELD = {
    "identify": "traits",
    "group": "traits",
    "track": "properties",
    "page": "properties",
    "screen": "properties",
}
"""Which field of a call holds what becomes `Event.properties`; an alias has none."""


_IDS = (("user_id", ("userId", "user_id")), ("anonymous_id", ("anonymousId", "anonymous_id")))
"""Kinds of identifiers and the fields that hold them, of which the first with a value counts."""


def track_type(name: str) -> str:
    """The type of the event that a track call names."""
    # A producer's own event by the name of a call must not be taken for that call.
    return SEMANTIC.get(name) or (f"track.{name}" if name in CALLS else name)


def contacts(traits: Mapping[str, Any]) -> list[Identifier]:
    """The addresses among a person's traits, which name them as well."""
    identifiers: list[Identifier] = []
    _add_contacts(identifiers, traits)
    return identifiers


class Request(NamedTuple):
    """What all messages of one request share."""

    source: str
    workspace: str
    received_at: int
    fresh_key: Callable[[], str]
    envelope: Envelope
    """What it said for all, which is kept with a message that is rejected."""
    marks: tuple[str, ...] = ()
    """Of all its messages."""


def event_of(message: dict[str, Any], request: Request) -> Event:
    """The event of a message. What finds its place is taken out of ``message``; the rest is kept in `Event.wire`.

    Raises `EventRejected` with one of `rejection.CODES`.
    """
    absent: list[str] = []
    kind = _kind(message, request.envelope.kind, absent)
    context = _context(message, request.envelope)
    properties = _properties(message, kind, context, absent)
    type_, object_ref = _subject(message, kind, properties, absent)
    identifiers = _identifiers(message, kind, properties, context)
    historical = (
        request.envelope.historical
        or message.get("historical") is True
        or message.get("historical_migration") is True
        or context.get("historical") is True
    )
    stamped, at, marks = _times(message, request, historical)
    key = _key(message, request, absent)
    # A credential has no place in the log.
    message.pop("writeKey", None)
    return Event(
        type=type_,
        identifiers=identifiers,
        occurred_at=at,
        key=key,
        source=request.source,
        source_type="external",
        workspace=request.workspace,
        properties=properties,
        context=context,
        received_at=request.received_at,
        sent_time=stamped,
        marks=marks,
        historical=historical,
        object_ref=object_ref,
        wire={"segment": message, "absent": absent} if absent else {"segment": message},
    )


def _kind(message: dict[str, Any], kind: str, absent: list[str]) -> str:
    """The call that a message is: the one that the path named or, in a batch, that it names itself."""
    given = message.get("type")
    if not kind:
        # The specification's older pages call the field `action`.
        kind_given = given if given is not None else message.get("action")
        if type(kind_given) is not str or kind_given not in KINDS:
            shown = repr(kind_given)[:60] if type(kind_given) is str else json_type(kind_given)
            raise EventRejected("unknown_type", f"`type` must be one of {', '.join(sorted(KINDS))}, not {shown}")
        kind = kind_given
    if given == kind:
        del message["type"]
    elif "type" not in message:
        absent.append("type")
    return kind


def _context(message: dict[str, Any], envelope: Envelope) -> dict[str, Any]:
    context = message.get("context")
    if context is not None and type(context) is not dict:
        raise wrong_type("context", "an object", context)
    integrations = message.get("integrations")
    if integrations is not None and type(integrations) is not dict:
        raise wrong_type("integrations", "an object", integrations)
    if envelope.integrations is not None:
        message["integrations"] = _merged(envelope.integrations, integrations or {})
    if envelope.context is not None:
        context = _merged(envelope.context, context or {})
    if context:
        message.pop("context", None)
        return context
    return {}


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        merged[name] = _merged(under, value) if type(under) is dict and type(value) is dict else value
    return merged


def _properties(message: dict[str, Any], kind: str, context: dict[str, Any], absent: list[str]) -> dict[str, Any]:
    if kind == "alias":
        return {}
    field = BODY_FIELD[kind]
    properties = message.get(field)
    if properties is None or properties == {}:
        # Some clients put the traits of an identify call into the context only, a few beside an empty `traits`.
        if kind == "identify" and type(context.get("traits")) is dict:
            absent.append("traits")
            return dict(context["traits"])
        # An empty one stays in the message, to tell it from one that was not there.
        return {}
    if type(properties) is not dict:
        raise wrong_type(field, "an object", properties)
    del message[field]
    return properties


def _subject(message: dict[str, Any], kind: str, properties: dict[str, Any], absent: list[str]) -> tuple[str, str]:
    """The event's type, and the producer's name of the object that it is about."""
    if kind == "track":
        return _track_type(message, properties, absent), ""
    if kind == "group":
        return kind, _required(message, "groupId", "no_group_id")
    if kind == "alias":
        _required(message, "userId", "no_user_id")
        return kind, _required(message, "previousId", "no_previous_id")
    if kind in ("page", "screen"):
        name = message.get("name")
        if type(name) is str and name:
            del message["name"]
            return kind, name
        if name is not None and type(name) is not str:
            raise wrong_type("name", "text", name)
    return kind, ""


def _track_type(message: dict[str, Any], properties: dict[str, Any], absent: list[str]) -> str:
    name = message.get("event")
    if name is None or name == "":
        raise EventRejected("no_event_name", "a track call needs `event`, the name of what happened")
    if type(name) is not str:
        raise wrong_type("event", "text", name)
    type_ = check_type(track_type(name))
    if added := complete(name, type_, properties):
        absent += [f"properties.{added_name}" for added_name in added]
    if type_ == name:
        del message["event"]
    return type_


def _required(message: dict[str, Any], field: str, code: str) -> str:
    value = text_field(message, field)
    if not value:
        raise EventRejected(code, f"the call needs `{field}`")
    return value


def _identifiers(
    message: dict[str, Any], kind: str, properties: dict[str, Any], context: dict[str, Any]
) -> tuple[Identifier, ...]:
    """Who is meant. Whether a value is junk, such as ``null`` in letters, is for the identity rules to say."""
    identifiers: list[Identifier] = []
    for name, names in _IDS:
        for field in names:
            if field in message and (value := text_field(message, field)):
                identifiers.append(Identifier(name, value))
                break
    if kind == "alias":
        identifiers += _previous(text_field(message, "previousId"), identifiers)
    # The traits of a group call describe the group: its address is not the person's.
    if kind == "identify":
        _add_contacts(identifiers, properties)
    if context:
        traits = context.get("traits")
        if type(traits) is dict and traits:
            _add_contacts(identifiers, traits)
        if context.get("externalIds") is not None:
            _add_external(identifiers, context["externalIds"])
    return check_identifiers(identifiers)


def _previous(value: str, identifiers: list[Identifier]) -> list[Identifier]:
    """An alias names what somebody was called before: mostly the anonymous id, in older set-ups an e-mail address.

    It is never a second user_id: a person has one, and every alias would end in quarantine. Where somebody has that
    user_id, the join waits for review (`threadline.engine.recording.identity.review_alias`).
    """
    identifier = Identifier("email" if normal_address(value) else "anonymous_id", value)
    return [] if identifier in identifiers else [identifier]


def _add_contacts(identifiers: list[Identifier], traits: Mapping[str, Any]) -> None:
    for kind in ("email", "phone"):
        value = traits.get(kind)
        if type(value) is int and kind == "phone":
            value = str(value)
        # Traits are free in form: one that is no address is a trait like any other, and no identifier.
        if type(value) is str and 0 < len(value) <= IDENTIFIER_LENGTH_MAX:
            identifier = Identifier(kind, value)
            if identifier not in identifiers:
                identifiers.append(identifier)


def _add_external(identifiers: list[Identifier], entries: Any) -> None:
    if type(entries) is not list:
        raise wrong_type("context.externalIds", "an array", entries)
    for entry in entries:
        if type(entry) is not dict:
            raise wrong_type("context.externalIds[]", "an object", entry)
        # Ids of another collection name a company, not a person.
        if entry.get("collection") not in (None, "users"):
            continue
        kind, value = text_field(entry, "type"), text_field(entry, "id")
        check_kind(kind)
        identifier = Identifier(kind, value)
        if value and identifier not in identifiers:
            identifiers.append(identifier)


def _times(message: dict[str, Any], request: Request, historical: bool) -> tuple[int | None, int, tuple[str, ...]]:
    """The time that the producer told, when it occurred, and the marks."""
    marks = list(request.marks)
    stamp = usable_time(message, "timestamp", marks)
    original = usable_time(message, "originalTimestamp", marks)
    sent = usable_time(message, "sentAt", marks)
    shared = request.envelope.sent
    if sent is None or (shared is not None and shared > sent):
        # When it sends again, RudderStack's client for node 1.x renews the clock of the batch and no other.
        sent = shared
    stamped = original if stamp is None else stamp
    through_another = usable_time(message, "receivedAt", marks) is not None
    if stamp is not None and (original is not None or through_another):
        # Beside the clock of the client, `timestamp` is what its caller said (RudderStack's client for node), or what
        # another server of this kind has corrected already. In either case it stands.
        sent = None
    if historical:
        # Times of an import come from a database, not from the clock of the machine that sends them.
        sent = None
    at, more = place_in_time(stamped, sent, request.received_at)
    return stamped, at, tuple(dict.fromkeys((*marks, *more)))


def _key(message: dict[str, Any], request: Request, absent: list[str]) -> str:
    name = text_field(message, "messageId")
    if not name:
        absent.append("messageId")
        return request.fresh_key()
    if message["messageId"] == (key := key_of_name(name)):
        del message["messageId"]
    return key


# --- event names that say the same as a type of Threadline's catalogue -----------------------------

CATALOGUE = (
    "agent_insight",
    "campaign_delivered",
    "campaign_engaged",
    "campaign_ignored",
    "conversation_ended",
    "conversation_started",
    "discount_accepted",
    "discount_requested",
    "form_submitted",
    "interest_detected",
    "objection_raised",
    "product_asked",
    "product_viewed",
    "purchase_abandoned",
    "purchase_completed",
    "purchase_refunded",
    "sentiment_detected",
    "subscription_cancelled",
    "subscription_created",
)
"""The types that the shipped definitions know."""

# The catalogue's own names are also understood in Segment's style: `Form Submitted` is `form_submitted`.
SEMANTIC = {name.replace("_", " ").title(): name for name in CATALOGUE} | {
    # E-commerce, version 2 of the specification and the names of version 1 that are still sent.
    "Order Completed": "purchase_completed",
    "Completed Order": "purchase_completed",
    "Order Refunded": "purchase_refunded",
    "Product Viewed": "product_viewed",
    "Viewed Product": "product_viewed",
    # The specification has no event for what did not happen. These are the names that shops use for it.
    "Cart Abandoned": "purchase_abandoned",
    "Checkout Abandoned": "purchase_abandoned",
    "Abandoned Cart": "purchase_abandoned",
    "Abandoned Checkout": "purchase_abandoned",
    # E-mail.
    "Email Delivered": "campaign_delivered",
    "Email Opened": "campaign_engaged",
    "Email Link Clicked": "campaign_engaged",
    # Live chat and copilot.
    "Live Chat Conversation Started": "conversation_started",
    "Live Chat Conversation Ended": "conversation_ended",
}
"""Segment's event name -> Threadline's type. A name that is not here is the type itself."""

_ACTIONS = {"Email Opened": "open", "Email Link Clicked": "click"}
_TOTAL = "total", ("revenue", "value")
_CAMPAIGN = "campaign_id", ("campaign_name", "email_id")
_WANTED = {
    "purchase_completed": _TOTAL,
    "purchase_refunded": _TOTAL,
    "campaign_delivered": _CAMPAIGN,
    "campaign_engaged": _CAMPAIGN,
}
"""Type -> the property that is read, and where else producers put it, first choice first."""


def complete(name: str, type_: str, properties: dict[str, Any]) -> list[str]:
    """Add the properties that a type's features read, where the producer said the same under another name.

    Changes ``properties``: what is there stays as it is. Answers with the names that were added.
    """
    added: list[str] = []
    wanted, sources = _WANTED.get(type_, ("", ()))
    if wanted not in properties:
        for source in sources:
            if properties.get(source) is not None:
                properties[wanted] = properties[source]
                added.append(wanted)
                break
    if name in _ACTIONS and "action" not in properties:
        properties["action"] = _ACTIONS[name]
        added.append("action")
    return added
