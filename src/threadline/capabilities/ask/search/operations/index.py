"""The index itself: how far it has come, and the call that brings it to the end of the log or builds it anew."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.search.operations import SEARCH_GROUP
from threadline.kernel.disclosure import not_personal
from threadline.kernel.operation import Context, NoParams, Params, always, operation

SYNC_EVENTS = 100_000


@not_personal
class SearchStatus(msgspec.Struct, kw_only=True):
    """A search index and how far it has come."""

    engine: Annotated[str, Meta(description="embedded or opensearch.")]
    position: Annotated[int, Meta(description="Entries of the log that it has, the first ones.")]
    complete: Annotated[bool, Meta(description="Whether that is the whole log.")]
    documents: Annotated[int, Meta(description="Events of all workspaces that can be found.")]
    bytes: int
    location: str


class SyncParams(Params, kw_only=True):
    """How far to bring it."""

    rebuild: Annotated[bool, Meta(description="Forget everything first, and begin at the start of the log.")] = False
    limit: Annotated[int, Meta(description="At most so many entries of the log in this call.", ge=1, le=10_000_000)] = (
        SYNC_EVENTS
    )


@operation("GET /v1/search/status", SEARCH_GROUP, scope="admin")
def status(context: Context, params: NoParams) -> SearchStatus:
    """Show how far the search index has come, and how large it is."""
    status = context.engine.search.status()
    return SearchStatus(
        engine=status.engine,
        position=status.progress.position,
        complete=status.progress.is_complete,
        documents=status.documents,
        bytes=status.bytes,
        location=status.location,
    )


@operation(
    "POST /v1/search/sync",
    SEARCH_GROUP,
    done=("Brought the search index up to date",),
    is_long=always,
    scope="admin",
    example=SyncParams(),
)
def sync(context: Context, params: SyncParams) -> SearchStatus:
    """Bring the search index up to date, or build it anew."""
    if params.rebuild:
        context.engine.search.rebuild()
    context.engine.search.catch_up(params.limit)
    return status(context, NoParams())
