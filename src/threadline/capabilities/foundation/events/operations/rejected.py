"""The rejected log: list what could not be recorded, and show an entry."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.operations import REJECTED_GROUP
from threadline.capabilities.foundation.events.parameters import Next, Page, checked_cursor, next_of
from threadline.capabilities.foundation.events.rejected import RejectedView, rejected_view
from threadline.kernel.operation import Context, Operation
from threadline.kernel.ports import WithRejected

EntryId = Annotated[str, Meta(description="The id of an entry of the rejected log.", min_length=1, max_length=64)]


class RejectedParams(Page, kw_only=True, forbid_unknown_fields=True):
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


def _rejected(context: Context[WithRejected], params: RejectedParams) -> RejectedPage:
    page = context.engine.rejected.page(context.workspace, checked_cursor(params.cursor, _CURSOR), params.limit)
    entries = [
        rejected_view(entry)
        for _, entry in page
        if params.status in ("", entry.status) and params.code in ("", entry.code)
    ]
    return RejectedPage(entries=entries, next=next_of(page, params.limit, lambda row: row[0]))


REJECTED_LIST = Operation(
    name="rejected_list",
    group=REJECTED_GROUP,
    summary="List what could not be recorded, newest first.",
    params=RejectedParams,
    result=RejectedPage,
    run=_rejected,
    method="GET",
    path="/v1/rejected",
    example=RejectedParams(status="open", limit=20),
)


class RejectedEntryParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which entry."""

    id: EntryId


def _rejected_entry(context: Context[WithRejected], params: RejectedEntryParams) -> RejectedView:
    return rejected_view(context.engine.rejected.entry(context.workspace, params.id).entry)


REJECTED_ENTRY = Operation(
    name="rejected_show",
    group=REJECTED_GROUP,
    summary="Show one entry of the rejected log with its payload.",
    params=RejectedEntryParams,
    result=RejectedView,
    run=_rejected_entry,
    method="GET",
    path="/v1/rejected/{id}",
    example=RejectedEntryParams(id="0123456789abcdef0123456789abcdef"),
)
