"""The events that a fact was made of."""

from __future__ import annotations

from typing import Any

import msgspec

from threadline.capabilities.foundation.events.forms import EventView, PersonRef, event_view, read_cursor, write_cursor
from threadline.capabilities.foundation.events.parameters import Next, Page
from threadline.capabilities.profile.memory.eviction import RETRACTIONS
from threadline.capabilities.profile.memory.operations import MEMORY_GROUP
from threadline.capabilities.profile.memory.operations.facts import FactKey, FactType
from threadline.capabilities.profile.memory.projection import FactDerivations, facts_of
from threadline.kernel.operation import Context, shaped_operation
from threadline.kernel.ports import Person

_PAGES_MAX = 20
"""Pages of events looked through for one page of lineage: those of the same types may make other facts."""


class LineageParams(Page, kw_only=True):
    """Of which fact, and where to go on."""

    id: PersonRef
    type: FactType
    key: FactKey


class LineagePage(msgspec.Struct, kw_only=True):
    """Events that made a fact, took it back or gave it back, newest first.

    A page may be short of its limit; it is the last only if ``next`` is empty.
    """

    person: str
    events: list[EventView]
    next: Next = ""


@shaped_operation(
    "GET /v1/people/{id}/memory/{type}/{key}/events",
    MEMORY_GROUP,
    example=LineageParams(id="user_id:42", type="purchase", key="last_transaction"),
)
def lineage(by_type: FactDerivations, context: Context, params: LineageParams) -> LineagePage:
    """List the events that made a fact, retracted it or restored it."""
    types = frozenset(by_type) | RETRACTIONS
    person = context.engine.reader.person(context.workspace, params.id)
    events: list[Any] = []
    after, wanted, size = read_cursor(params.cursor), (params.type, params.key), max(params.limit, 100)
    for _ in range(_PAGES_MAX):
        page = context.engine.reader.events(person, types=types, after=after, limit=size, reverse=True)
        for recorded in page:
            after = (recorded.event.occurred_at, recorded.id)
            if wanted in facts_of(by_type, recorded):
                events.append(recorded)
                if len(events) == params.limit:
                    return _page(person, events, write_cursor(recorded))
        if len(page) < size:
            return _page(person, events, "")
    return _page(person, events, write_cursor(page[-1]))


def _page(person: Person, events: list[Any], following: str) -> LineagePage:
    return LineagePage(person=person.id, events=[event_view(recorded) for recorded in events], next=following)
