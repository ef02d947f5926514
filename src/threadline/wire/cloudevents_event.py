"""One CloudEvent, whichever way it came, as an event."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable
from typing import Any, NamedTuple

from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event, Identifier, key_of_name
from threadline.kernel.event_limits import check_type
from threadline.wire.message import check_identifiers, json_type, place_in_time, time_field

PERSON_KINDS = frozenset({"user_id", "anonymous_id", "email", "phone", "whatsapp", "external_id"})
"""Kinds of identifiers that a subject may name in front of a colon, unless others are declared."""


def person_kinds(declared: Iterable[str]) -> frozenset[str]:
    """The kinds that a subject may name where these are declared."""
    return PERSON_KINDS | frozenset(declared)


EXTENSION_NAME = re.compile(r"[a-z0-9]+")
_PERSON_EXTENSIONS = {"userid": "user_id", "anonymousid": "anonymous_id", "email": "email", "phone": "phone"}
_DATA_MEMBERS = ("data", "data_base64")
_REQUIRED = ("id", "source", "specversion", "type")
_CORE = frozenset({*_REQUIRED, *_DATA_MEMBERS, "datacontenttype", "dataschema", "subject", "time"})

_URI_CHARACTERS = r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_URI_REFERENCE = re.compile(f"{_URI_CHARACTERS}+")
_URI = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:{_URI_CHARACTERS}+")
_TOKEN = r"[A-Za-z0-9!#$&^_.+\-]+"
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}\s*(?:;.*)?")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_FORMS = {
    "source": (_URI_REFERENCE, "a URI reference"),
    "dataschema": (_URI, "an absolute URI"),
    "datacontenttype": (_MEDIA_TYPE, "a media type"),
    "subject": (re.compile("(?s:.+)"), "a text with something in it"),
    "time": (_TIMESTAMP, "an RFC 3339 timestamp"),
}
"""What the values of attributes must be, as an expression and in words."""
# The characters that the type String of the specification leaves out.
_FORBIDDEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_INTEGER_MAX = 2**31


class Request(NamedTuple):
    """What all events of one request share."""

    source: str
    workspace: str
    received_at: int
    kinds: frozenset[str]


def event_of(message: dict[str, Any], request: Request) -> Event:
    """The event of a CloudEvent in its structured form. What finds its place is taken out of ``message``.

    Raises `EventRejected` with one of `rejection.CODES`.
    """
    _check(message)
    key = key_of(message["source"], message["id"])
    type_ = check_type(message.pop("type"))
    del message["specversion"]
    occurred = time_field(message, "time")
    at, marks = place_in_time(occurred, None, request.received_at)
    identifiers, object_ref = _person(message, request.kinds)
    properties, form = _data(message)
    # Null means that an attribute is not set. It stays, so that the event can be given back as it came.
    schema = message.get("dataschema")
    if schema is not None:
        del message["dataschema"]
    extensions = [
        name for name in message if name not in _CORE and name not in _PERSON_EXTENSIONS and name != "personid"
    ]
    # As text, as which they come in headers: the same event is the same in each mode. The values stay in the message.
    context = {name: _text(message[name]) for name in extensions if message[name] is not None}
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
        sent_time=occurred,
        marks=marks,
        historical=context.get("historical") == "true",
        schema_version=schema or "",
        object_ref=object_ref,
        wire={"cloudevent": message, "data": form} if form else {"cloudevent": message},
    )


# --- what the specification allows -----------------------------------------------------------------------------------


def _check(message: dict[str, Any]) -> None:
    for name in _REQUIRED:
        value = message.get(name)
        if value is None or value == "":
            raise EventRejected("missing_attribute", f"a CloudEvent needs `{name}`")
    for name, value in message.items():
        if name not in _DATA_MEMBERS and value is not None:
            check_attribute(name, value)


def check_attribute(name: str, value: Any) -> None:
    """Raise `EventRejected` for an attribute that the specification does not allow."""
    if EXTENSION_NAME.fullmatch(name) is None:
        text = f"{name[:40]!r}: names of attributes have lower-case letters and digits only"
        raise EventRejected("invalid_attribute", text)
    if name in _CORE and type(value) is not str:
        raise EventRejected("invalid_attribute", f"`{name}` must be text, not {json_type(value)}")
    if not extension_value(value):
        shown = "text with control characters" if type(value) is str else json_type(value)
        raise EventRejected("invalid_attribute", f"`{name}` must be text, a boolean or a 32-bit integer, not {shown}")
    if name == "specversion" and value != "1.0":
        raise EventRejected("unsupported_specversion", f"`specversion` is {value!r}; only 1.0 is read")
    if name in _FORMS:
        form, expected = _FORMS[name]
        if form.fullmatch(value) is None:
            code = "invalid_time" if name == "time" else "invalid_attribute"
            raise EventRejected(code, f"`{name}`: {value[:64]!r} is not {expected}")


def extension_value(value: Any) -> bool:
    """Whether the specification's types have a place for this value."""
    if type(value) is str:
        return _FORBIDDEN.search(value) is None
    return type(value) is bool or (type(value) is int and -_INTEGER_MAX <= value < _INTEGER_MAX)


# --- what it means ---------------------------------------------------------------------------------------------------


def key_of(source: str, id: str) -> str:
    """(source, id) names the event in all the world, so both make the key. No source holds a blank, so pairs differ."""
    return key_of_name(f"{source} {id}")


def _person(message: dict[str, Any], kinds: frozenset[str]) -> tuple[tuple[Identifier, ...], str]:
    """Who is meant, and what the event is about. Where an extension names the person, the subject is the object."""
    identifiers: list[Identifier] = []
    if message.get("personid") not in (None, ""):
        identifiers.append(_named(_extension_text(message, "personid"), kinds))
    for name, kind in _PERSON_EXTENSIONS.items():
        if message.get(name) not in (None, ""):
            identifier = Identifier(kind, _extension_text(message, name))
            if identifier not in identifiers:
                identifiers.append(identifier)
    subject = message.get("subject")
    if identifiers:
        return check_identifiers(identifiers), subject or ""
    return check_identifiers([_named(subject, kinds)] if subject else []), ""


def _extension_text(message: dict[str, Any], name: str) -> str:
    value = message[name]
    if type(value) is bool:
        raise EventRejected("invalid_attribute", f"`{name}` must name a person, not be a boolean")
    return str(value)


def _text(value: Any) -> str:
    return ("false", "true")[value] if type(value) is bool else str(value)


def _named(text: str, kinds: frozenset[str]) -> Identifier:
    """``email:a@b.c`` is an identifier of that kind; anything else is a user id, colons and all."""
    kind, colon, value = text.partition(":")
    return Identifier(kind, value) if colon and value and kind in kinds else Identifier("user_id", text)


def is_json(content_type: str) -> bool:
    """Whether a media type says JSON: a subtype ``json`` or one that ends in ``+json``. Saying nothing says JSON."""
    subtype = content_type.partition(";")[0].strip().lower().rpartition("/")[2]
    return subtype in ("", "json") or subtype.endswith("+json")


def _data(message: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The properties, and which form of data they stand for; no form means an object, as it is."""
    if message.get("data_base64") is not None:
        if message.get("data") is not None:
            raise EventRejected("invalid_data", "an event has `data` or `data_base64`, not both")
        text = message.pop("data_base64")
        try:
            if type(text) is not str:
                raise ValueError
            b64decode(text, validate=True)
        except ValueError:
            raise EventRejected("invalid_data", "`data_base64` is not Base64") from None
        return {"data_base64": text}, "base64"
    if "data" not in message:
        return {}, "none"
    data = message.pop("data")
    return (data, "") if type(data) is dict else ({"data": data}, "value")
