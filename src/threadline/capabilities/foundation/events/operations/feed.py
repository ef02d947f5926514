"""The events of a workspace in the order in which they commit."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Cursor, EventView, event_view
from threadline.capabilities.foundation.events.operations import EVENTS_GROUP
from threadline.capabilities.foundation.events.parameters import Page
from threadline.kernel.disclosure import SENTENCE, not_personal
from threadline.kernel.errors import EventDamaged
from threadline.kernel.operation import Context, operation
from threadline.kernel.store import is_erased

_LOOKED_AT_MAX = 10_000
"""Log entries looked at for one page: the feed is of all workspaces, a page of one."""

END = "end"
"""Instead of a cursor: what is committed from now on."""


class FeedParams(Page, kw_only=True):
    """From where to follow the workspace's events."""

    cursor: Annotated[
        Cursor,
        Meta(
            description="The `next` of the previous page; empty for the beginning, `end` for what is new from now on."
        ),
    ] = ""
    skip_damaged: Annotated[
        bool, Meta(description="Go past events that are damaged; otherwise the feed ends before one, with an error.")
    ] = False


@not_personal
class DamagedView(msgspec.Struct, kw_only=True):
    """An event that is not as it was written, and is left out. Of which workspace it was is not known for certain."""

    id: str
    position: Annotated[str, Meta(description="Its place in the log, as a cursor of this feed.")]
    why: Annotated[str, SENTENCE]


class FeedPage(msgspec.Struct, kw_only=True):
    """Committed events in the order of commits. Ask again with ``next``: no event is skipped or answered twice."""

    events: list[EventView]
    next: str
    more: Annotated[bool, Meta(description="Whether there may be more right now.")]
    damaged: Annotated[list[DamagedView], Meta(description="With `skip_damaged`: the events that were passed.")] = []
    waiting: Annotated[
        bool,
        Meta(
            description="Whether what comes next is withheld until a writer that has announced events commits them or "
            "is given up on: there is more, and to ask again after a second is soon enough. Only on DynamoDB."
        ),
    ] = False


@operation("GET /v1/feed", EVENTS_GROUP, example=FeedParams(limit=20))
def feed(context: Context, params: FeedParams) -> FeedPage:
    """Follow every event of the workspace in the order of commits."""
    engine, cursor = context.engine, params.cursor
    if cursor == END:
        return FeedPage(events=[], next=engine.log.feed_end(), more=False)
    events: list[EventView] = []
    damaged: list[DamagedView] = []
    looked_at, more = 0, True
    while more and len(events) < params.limit and looked_at < _LOOKED_AT_MAX:
        page = engine.log.feed(cursor, params.limit - len(events))
        more = len(page) == params.limit - len(events)
        for feed_entry in page:
            if is_erased(feed_entry.entry):
                cursor = feed_entry.cursor
                continue
            try:
                recorded = engine.log.read(feed_entry)
            except EventDamaged as error:
                if params.skip_damaged:
                    cursor = feed_entry.cursor
                    damaged.append(DamagedView(id=error.id, position=error.position, why=error.why))
                    continue
                if cursor != params.cursor:
                    # What precedes it is given first; the next page begins with it.
                    return FeedPage(events=events, next=cursor, more=True)
                error.hint = f"Ask with skip_damaged=true to go past it. {error.hint}"
                raise
            cursor = feed_entry.cursor
            if is_erased(feed_entry.entry):
                continue
            if recorded.event.workspace == context.workspace:
                events.append(event_view(recorded))
        looked_at += len(page)
    waiting = not more and engine.log.feed_waits(cursor)
    return FeedPage(events=events, next=cursor, more=more or waiting, waiting=waiting, damaged=damaged)
