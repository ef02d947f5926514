"""Events in the form that callers write and read: native events in, whole events out, cursors between pages."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.kernel.disclosure import FREE, IDENTIFIER_VALUE, IDENTIFIERS, NOT_PERSONAL, free
from threadline.kernel.errors import EventRejected, InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier, Recorded, key_of_name
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import EVENT_KEY_LENGTH_MAX, EVENT_TYPE_LENGTH_MAX
from threadline.kernel.operation import Context
from threadline.kernel.time import EARLIEST, LATEST, check_date, format_time, parse_duration, parse_time
from threadline.kernel.why import LIVE, REASONS, Why

_DATE_TIME = {"format": "date-time"}
Time = Annotated[
    str,
    Meta(
        description="RFC 3339, e.g. 2026-03-01T12:00:00Z; without an offset UTC.",
        max_length=64,
        extra={"check": parse_time},
        extra_json_schema=_DATE_TIME,
    ),
    NOT_PERSONAL,
]
Instant = Annotated[
    str, Meta(description="RFC 3339 in UTC, to the microsecond.", extra_json_schema=_DATE_TIME), NOT_PERSONAL
]
Duration = Annotated[
    str,
    Meta(
        description="A number and us, ms, s, m, h, d, w or y, e.g. 30d; also several, e.g. 1d12h.",
        max_length=32,
        extra={"check": parse_duration},
        extra_json_schema={"pattern": "^[1-9][0-9]{0,8}(us|ms|s|m|h|d|w|y)$"},
    ),
    NOT_PERSONAL,
]
Date = Annotated[
    str,
    Meta(
        description="A date, e.g. 2026-03-01.",
        max_length=10,
        extra={"check": check_date},
        extra_json_schema={"format": "date"},
    ),
    NOT_PERSONAL,
]
PersonRef = Annotated[
    str,
    Meta(
        description="A user id, any other identifier as kind:value (email:ada@example.com), or a person's id.",
        min_length=1,
        max_length=1_024,
    ),
]
Identifiers = Annotated[list[str], Meta(description="kind:value, strongest first."), IDENTIFIERS]
EventId = Annotated[str, Meta(description="An event's id, 32 hex digits.", min_length=1, max_length=64), NOT_PERSONAL]


def not_a_cursor(text: str) -> InvalidValue:
    """The refusal of a cursor that did not come from an earlier page of the same list."""
    message = f"{text[:64]!r} is not a cursor; pass the `next` of the page before as it is"
    return InvalidValue(message, param="cursor")


def _check_cursor(text: str) -> None:
    if not re.fullmatch("[!-~]*", text):
        raise not_a_cursor(text)


Cursor = Annotated[
    str,
    Meta(
        description="The `next` of the previous page. Opaque.",
        max_length=200,
        extra={"check": _check_cursor},
        extra_json_schema={"pattern": "^[!-~]*$"},
    ),
]


class NativeEvent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One event in Threadline's own form."""

    type: Annotated[
        str,
        Meta(description=f"What happened, e.g. purchase_completed, in at most {EVENT_TYPE_LENGTH_MAX} characters."),
    ]
    identifiers: Annotated[
        dict[str, str | list[str]], Meta(description="Whose event it is: kind -> value, or several values of one kind.")
    ]
    key: Annotated[
        str,
        Meta(
            description="Your idempotency key: the same key again is the same event. Required; one of more than "
            f"{EVENT_KEY_LENGTH_MAX} characters is hashed, and stands in `wire.key`."
        ),
    ] = ""
    occurred_at: Time | None = None
    """When it happened; without it the time of receipt."""
    properties: dict[str, Any] = {}
    context: dict[str, Any] = {}
    historical: Annotated[
        bool, Meta(description="Back-filled history: it counts as known from when it occurred, not from now.")
    ] = False
    object_id: Annotated[str, Meta(description="Your own id of the object it is about.", max_length=512)] = ""
    object_ref: Annotated[
        str, Meta(description="The producer's name of the object it is about, e.g. a group's id.", max_length=512)
    ] = ""
    schema_version: Annotated[
        Annotated[str, Meta(max_length=100)] | int | float, Meta(description="Of its properties, such as 2 or `2.1`.")
    ] = ""
    expected: Annotated[int, Meta(ge=0)] | None = None
    """Record it only if its person is at this position: for whoever decides on what was read."""


@key_fields("kind", "value")
class IdentifierView(msgspec.Struct, kw_only=True):
    """One way to name a person."""

    kind: str
    value: Annotated[str, IDENTIFIER_VALUE]


@key_fields("occurred_at", "type", "identifiers", "properties")
class EventView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A recorded event, whole."""

    id: str
    type: str
    source: Annotated[str, NOT_PERSONAL]
    source_type: str
    key: str
    occurred_at: Instant
    received_at: Instant
    recorded_at: Instant
    identifiers: list[IdentifierView]
    properties: Annotated[dict[str, Any], free(type_by="type")]
    context: Annotated[dict[str, Any], FREE]
    thread: Annotated[
        str, Meta(description="The thread that keeps it; it never changes, whichever person it belongs to.")
    ]
    sequence: Annotated[int, Meta(description="Its place in that thread, from 1.")]
    cause: Annotated[
        str, Meta(description="The id of the event, or the request, that made it; empty for what came from outside.")
    ] = ""
    marks: Annotated[list[str], Meta(description="What was done to it on the way in, e.g. clock_corrected.")] = []
    historical: bool = False
    why: Annotated[
        Why,
        Meta(
            description="Why it happened: `live`; or Threadline made it because of `time`, because of imported "
            "`history`, because `definitions` were changed, by a `refresh`, or by an operator's `merge` or split."
        ),
    ] = LIVE
    original_time: Annotated[Instant | None, Meta(description="As the producer gave it, before any correction.")] = None
    schema_version: str = ""
    object_id: str = ""
    object_ref: str = ""
    wire: Annotated[
        dict[str, Any],
        Meta(description="Fields of the message it came in that have no place of their own."),
        FREE,
    ] = {}
    person: Annotated[str, Meta(description="The id of the person it belongs to now, where that was asked for.")] = ""


class EventDetail(EventView, kw_only=True, omit_defaults=True):
    """One recorded event with the message that it came in."""

    payload: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The message as it came, in Segment's form or CloudEvents'. Without it the event came in "
            "Threadline's own form, and is all that came."
        ),
        FREE,
    ] = None


@lru_cache(maxsize=4_096)
def instant(at: int) -> str:
    """A time as text. What a Python caller stamped with no time that text can hold reads as the nearest that it can."""
    # Cached: the view of a person has hundreds of times, many of them twice.
    return format_time(min(max(at, EARLIEST), LATEST))


def event_view(recorded: Recorded, person: str = "") -> EventView:
    """The form in which an event is read."""
    event = recorded.event
    return EventView(
        id=recorded.id,
        type=event.type,
        source=event.source,
        source_type=event.source_type,
        key=event.key,
        occurred_at=instant(event.occurred_at),
        received_at=instant(event.received_at),
        recorded_at=instant(recorded.recorded_at),
        identifiers=[IdentifierView(kind=i.kind, value=i.value) for i in event.identifiers],
        properties=event.properties,
        context=event.context,
        thread=recorded.thread,
        sequence=recorded.sequence,
        cause=recorded.cause,
        marks=[mark for mark in event.marks if mark not in REASONS],
        historical=event.historical,
        why=event.why,
        original_time=None if event.sent_time is None else instant(event.sent_time),
        schema_version=event.schema_version,
        object_id=event.object_id,
        object_ref=event.object_ref,
        wire=event.wire,
        person=person,
    )


def original(forms: Mapping[str, Callable[[Event], dict[str, Any]]], event: Event) -> dict[str, Any] | None:
    """The message that an event came in as it came; None if it came in Threadline's own form."""
    return next((write(event) for name, write in forms.items() if name in event.wire), None)


def native_event(
    native: NativeEvent, *, workspace: str, source: str, source_type: str, received_at: int, label: str = "event"
) -> Event:
    """The event that a caller wrote, stamped with its way in.

    Raises `EventRejected`, with ``label`` in the message, for what is not well formed.
    """
    if not native.key:
        raise EventRejected(
            "invalid_key", f"{label}: give a `key`; it is what makes sending the same event again harmless"
        )
    try:
        given = None if native.occurred_at is None else parse_time(native.occurred_at)
    except InvalidValue as error:
        raise EventRejected("invalid_time", f"{label}.occurred_at: {error}") from None
    _check_numbers(native, label)
    identifiers = [
        Identifier(kind, value)
        for kind, values in native.identifiers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    key, version = key_of_name(native.key), native.schema_version
    return Event(
        type=native.type,
        identifiers=tuple(identifiers),
        occurred_at=received_at if given is None else given,
        key=key,
        wire={} if key == native.key else {"key": native.key},
        source=source,
        source_type=source_type,
        workspace=workspace,
        properties=native.properties,
        context=native.context,
        received_at=received_at,
        sent_time=given,
        historical=native.historical,
        object_id=native.object_id,
        object_ref=native.object_ref,
        schema_version=version if isinstance(version, str) else f"{version:.15g}",
    )


def _check_numbers(native: NativeEvent, label: str) -> None:
    try:
        # States are MessagePack: integers beyond 64 bits could be recorded but never folded.
        msgspec.msgpack.encode((native.properties, native.context))
    except (OverflowError, ValueError, TypeError, RecursionError) as error:
        message = f"{label}: a number does not fit into 64 bits, or a value cannot be kept; send it as text ({error})"
        raise EventRejected("number_out_of_range", message) from None


_ID = re.compile(r"[0-9a-f]{32}")
_CURSOR = re.compile(r"(-?[0-9]{1,19})\.([0-9a-f]{32})")


def write_cursor(recorded: Recorded) -> str:
    """The cursor that goes on after this event, in either direction."""
    text = f"{recorded.event.occurred_at}.{recorded.id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str) -> tuple[int, str] | None:
    """(occurred_at, id) of the last event seen; None for no cursor.

    Raises `InvalidValue` for what is not one of ours.
    """
    if not text:
        return None
    try:
        plain = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        plain = ""
    match = _CURSOR.fullmatch(plain)
    if match is None:
        raise not_a_cursor(text)
    return min(max(int(match[1]), EARLIEST), LATEST), match[2]


def checked_id(text: str) -> str:
    """The id, if it has the form of one. Raises `NotFound`: nothing is there under any other text."""
    if not _ID.fullmatch(text):
        raise NotFound(f"{text[:64]!r} is not an event id, which has 32 hex digits")
    return text


def past_instant(context: Context, text: str | None, name: str = "as_of") -> int | None:
    """The instant of an optional parameter. Raises `InvalidValue` for one that lies ahead."""
    at = time_param(text)
    if at is not None and at > context.now:
        raise InvalidValue(f"{name} is in the future; it is now {format_time(context.now)}", param=name)
    return at


def time_param(text: str | None) -> int | None:
    """The instant of an optional parameter. Raises `InvalidValue`."""
    return parse_time(text) if text else None
