"""Parameters that operations share: a page of a list, an instant to read at, a range of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Cursor, Time, not_a_cursor
from threadline.kernel.operation import Params

T = TypeVar("T")

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


class Page(Params, kw_only=True):
    """Which page of a list. An operation that looks at few or many at a time narrows or widens `limit`."""

    cursor: Cursor = ""
    limit: Annotated[int, Meta(description="How many on a page.", ge=1, le=PAGE_MAX)] = 100


class AsOf(Params, kw_only=True):
    """At which instant."""

    as_of: Annotated[
        Time | None,
        Meta(description="The instant to read at, with who was meant and what was known then; without it now."),
    ] = None


class KnownAsOf(AsOf, kw_only=True):
    """At which instant, and by what was known when."""

    known: Known = "then"


class TimeRange(Params, kw_only=True):
    """From which instant to which."""

    start: Start = None
    stop: Stop = None


class TimePage(Page, kw_only=True):
    """Which page of what happened in a range of time: a `Page` and a `TimeRange`, of which msgspec inherits one."""

    start: Start = None
    stop: Stop = None


def page_of(items: Iterable[T], limit: int, cursor_of: Callable[[T], str]) -> tuple[list[T], str]:
    """The first ``limit`` of these and the cursor after them, empty if there are no more: one more is read to know."""
    page = list(islice(items, limit + 1))
    return page[:limit], cursor_of(page[limit - 1]) if len(page) > limit else ""


def next_of(page: Sequence[T], limit: int, cursor_of: Callable[[T], str]) -> str:
    """The cursor after a page that was read with a limit; a full last page has an empty one behind it."""
    return cursor_of(page[-1]) if len(page) == limit else ""


def checked_cursor(cursor: str, form: re.Pattern[str]) -> str:
    """The cursor, or "" for none. Raises `InvalidValue` for what is not one of ours."""
    if cursor and not form.fullmatch(cursor):
        raise not_a_cursor(cursor)
    return cursor


_NUMBER = re.compile("[0-9]+")


def number_of(cursor: str) -> int:
    """The number that a cursor is, 0 for none. Raises `InvalidValue` for what is not one of ours."""
    return int(checked_cursor(cursor, _NUMBER) or 0)
