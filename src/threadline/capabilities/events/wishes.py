"""Wishes of callers: what an operation records for whoever calls it, once however often it is sent and by whomever."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from threadline.kernel.canonical import canonical_json
from threadline.kernel.event import Event, Identifier, event_id
from threadline.kernel.operation import Context

WISHES = "threadline.wishes"
"""The source of what operations record for a caller. Keys are unique by source, and a wish that is sent again may come
with another credential or from the command line: it is the same wish whoever sends it."""

RequestKey = Annotated[
    str,
    Meta(
        description="Names this call, so that repeating it changes nothing. Without it every call counts as new.",
        max_length=100,
    ),
]


def wish(
    context: Context,
    identifier: Identifier,
    type: str,
    properties: dict[str, Any],
    key: str,
    *,
    vouched: bool = False,
    source: str = WISHES,
) -> Event:
    """The event of a wish. ``vouched``: the operation vouches for what no producer may tell under this type.

    Who sent it stands in `Event.wire`, which is no part of the payload: a retry need not repeat it.
    """
    return Event(
        type=type,
        identifiers=(identifier,),
        occurred_at=context.now,
        key=key,
        source=source,
        source_type="internal" if vouched else context.source_type,
        workspace=context.workspace,
        properties=properties,
        received_at=context.now,
        wire={"by": context.source},
    )


def derived_key(*parts: str) -> str:
    """An idempotency key of 32 hex digits that is a function of these parts, however long they are."""
    return event_id("", "", canonical_json(parts).decode())
