"""Parameters that operations share: a page of a list, an instant to read at, a range of time."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Cursor, Time, not_a_cursor

PAGE_MAX = 1_000
Known = Annotated[
    Literal["then", "now"],
    Meta(
        description="then: who was meant at that instant and what was known of them, as it was served; now: all that "
        "has become known since, of the person of today."
    ),
]
Start = Annotated[Time | None, Meta(description="Only from this instant on.")]
Stop = Annotated[Time | None, Meta(description="Only before this instant.")]
Next = Annotated[str, Meta(description="The `cursor` of the next page; empty at the end.")]


class Page(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which page of a list. An operation that looks at few or many at a time narrows or widens `limit`."""

    cursor: Cursor = ""
    limit: Annotated[int, Meta(description="How many on a page.", ge=1, le=PAGE_MAX)] = 100


class AsOf(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """At which instant."""

    as_of: Annotated[
        Time | None,
        Meta(description="The instant to read at, with who was meant and what was known then; without it now."),
    ] = None


class KnownAsOf(AsOf, kw_only=True, forbid_unknown_fields=True):
    """At which instant, and by what was known when."""

    known: Known = "then"


class TimeRange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """From which instant to which."""

    start: Start = None
    stop: Stop = None


class TimePage(Page, kw_only=True, forbid_unknown_fields=True):
    """Which page of what happened in a range of time: a `Page` and a `TimeRange`, of which msgspec inherits one."""

    start: Start = None
    stop: Stop = None


def number_of(cursor: str) -> int:
    """The number that a cursor is, 0 for none. Raises `InvalidValue` for what is not one of ours."""
    if cursor and not (cursor.isascii() and cursor.isdigit()):
        raise not_a_cursor(cursor)
    return int(cursor or 0)
