"""The short forms of recording: what `track` and `identify` make of what they are given, here and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import from_datetime, parse_time
from threadline.wire.segment import complete, contacts, track_type

Instant = datetime | str | int
"""A time: an aware datetime, RFC 3339 text, or microseconds since 1970 UTC."""


def tracked(
    user_id: str,
    event: str,
    properties: Mapping[str, Any] | None,
    occurred_at: Instant | None,
    key: str | None,
    context: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The event of a `track` call, of the type and with the properties that Segment's call of that name has."""
    _check(user_id)
    type = track_type(event)
    chosen = dict(properties or {})
    complete(event, type, chosen)
    return _message(type, user_id, chosen, occurred_at, key, context)


def identified(
    user_id: str,
    traits: Mapping[str, Any] | None,
    anonymous_id: str | None,
    occurred_at: Instant | None,
    key: str | None,
    context: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The event of an `identify` call. The traits `email` and `phone` name the person as well."""
    _check(user_id)
    message = _message("identify", user_id, dict(traits or {}), occurred_at, key, context)
    named = {} if anonymous_id is None else {"anonymous_id": anonymous_id}
    message["identifiers"] |= {**named, **{contact.kind: contact.value for contact in contacts(traits or {})}}
    return message


def instant_of(moment: Instant) -> int:
    """A time in microseconds. Raises `InvalidValue` for what is none."""
    if isinstance(moment, datetime):
        return from_datetime(moment)
    if isinstance(moment, str):
        return parse_time(moment)
    if type(moment) is int:
        return moment
    raise InvalidValue(f"{moment!r} is not a time: give a datetime with a zone, RFC 3339 text or microseconds")


def _message(
    type: str,
    user_id: str,
    properties: dict[str, Any],
    occurred_at: Instant | None,
    key: str | None,
    context: Mapping[str, Any] | None,
) -> dict[str, Any]:
    fields = {"properties": properties, "occurred_at": occurred_at, "key": key, "context": context}
    given = {name: value for name, value in fields.items() if value}
    return {"type": type, "identifiers": {"user_id": user_id}, **given}


def _check(user_id: object) -> None:
    if not isinstance(user_id, str):
        raise InvalidValue(f"user_id: expected text, got {user_id!r}; a number names people as str(number)")
