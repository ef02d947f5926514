"""The rejected log: list what could not be recorded, and show an entry."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.operations import REJECTED_GROUP
from threadline.capabilities.foundation.events.parameters import Next, Page, checked_cursor, next_of
from threadline.capabilities.foundation.events.rejected import RejectedView, rejected_view
from threadline.kernel.operation import Context, Params, operation

EntryId = Annotated[str, Meta(description="The id of an entry of the rejected log.", min_length=1, max_length=64)]


class RejectedParams(Page, kw_only=True):
    """Which part of the rejected log to read."""

    status: Annotated[
        str, Meta(description="Only entries that are open, resubmitted or dismissed; empty: all.", max_length=20)
    ] = ""
    code: Annotated[str, Meta(description="Only entries rejected for this.", max_length=100)] = ""


class RejectedPage(msgspec.Struct, kw_only=True):
    """Entries newest first. Filters may leave a page short of its limit; it is the last only if ``next`` is empty."""

    entries: list[RejectedView]
    next: Next = ""


_CURSOR = re.compile(r"[0-9a-f]{16}\.[0-9a-f]+")
"""When an entry was received, and its id."""


@operation("GET /v1/rejected", REJECTED_GROUP, example=RejectedParams(status="open", limit=20))
def list_(context: Context, params: RejectedParams) -> RejectedPage:
    """List what could not be recorded, newest first."""
    page = context.engine.rejected.page(context.workspace, checked_cursor(params.cursor, _CURSOR), params.limit)
    entries = [
        rejected_view(entry)
        for _, entry in page
        if params.status in ("", entry.status) and params.code in ("", entry.code)
    ]
    return RejectedPage(entries=entries, next=next_of(page, params.limit, lambda row: row[0]))


class RejectedEntryParams(Params, kw_only=True):
    """Which entry."""

    id: EntryId


@operation("GET /v1/rejected/{id}", REJECTED_GROUP, example=RejectedEntryParams(id="0123456789abcdef0123456789abcdef"))
def show(context: Context, params: RejectedEntryParams) -> RejectedView:
    """Show one entry of the rejected log with its payload."""
    return rejected_view(context.engine.rejected.entry(context.workspace, params.id).entry)
