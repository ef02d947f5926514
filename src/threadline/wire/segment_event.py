"""One message of Segment's Tracking API, as an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from threadline.kernel.address import normal_address
from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event, Identifier, key_of_name
from threadline.kernel.event_limits import check_kind, check_type
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX
from threadline.kernel.rejected import Envelope
from threadline.wire.message import (
    check_identifiers,
    json_type,
    place_in_time,
    text_field,
    usable_time,
    wrong_type,
)
from threadline.wire.semantic import SEMANTIC, complete

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
