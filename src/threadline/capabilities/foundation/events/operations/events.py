"""Events: one by its id, and those of a person either way."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import (
    EventDetail,
    EventId,
    EventView,
    PersonRef,
    checked_id,
    event_view,
    original,
    read_cursor,
    time_param,
    write_cursor,
)
from threadline.capabilities.foundation.events.operations import EVENTS_GROUP
from threadline.capabilities.foundation.events.parameters import Next, TimePage, next_of
from threadline.kernel.lists import comma_separated
from threadline.kernel.operation import Context, Params, operation


class EventsParams(TimePage, kw_only=True):
    """Which events of a person to read, and in which direction."""

    id: PersonRef
    type: Annotated[
        str,
        Meta(
            description="Only this type, or several separated by commas; blanks around them are ignored.",
            max_length=4_000,
        ),
    ] = ""
    types: Annotated[
        list[str],
        Meta(description="Only these types, each taken literally, with any commas and blanks in it.", max_length=100),
    ] = msgspec.field(default_factory=list)
    order: Annotated[Literal["asc", "desc"], Meta(description="asc: oldest first; desc: newest first.")] = "desc"


class EventsPage(msgspec.Struct, kw_only=True):
    """A page of a person's events by (occurred_at, id)."""

    person: str
    position: Annotated[int, Meta(description="How many events the person has; the page is true at this position.")]
    events: list[EventView]
    next: Next = ""


@operation(
    "GET /v1/people/{id}/events",
    EVENTS_GROUP,
    example=EventsParams(id="user_id:42", type="purchase_completed", order="desc"),
)
def of(context: Context, params: EventsParams) -> EventsPage:
    """List a person's events by time and type, forward or back."""
    person = context.engine.reader.person(context.workspace, params.id)
    page = context.engine.reader.events(
        person,
        start=time_param(params.start),
        stop=time_param(params.stop),
        types=_types(params),
        after=read_cursor(params.cursor),
        limit=params.limit,
        reverse=params.order == "desc",
    )
    more = next_of(page, params.limit, write_cursor)
    return EventsPage(person=person.id, position=person.position, events=[event_view(r) for r in page], next=more)


def _types(params: EventsParams) -> frozenset[str]:
    """The types asked for. Any text can be a type: one with commas in it is taken as a list of them and as itself."""
    return frozenset({*params.types, params.type, *comma_separated(params.type)} - {""})


class EventParams(Params, kw_only=True):
    """Which event to read."""

    id: EventId


@operation("GET /v1/events/{id}", EVENTS_GROUP, example=EventParams(id="0123456789abcdef0123456789abcdef"))
def show(context: Context, params: EventParams) -> EventDetail:
    """Show one event, with the message that it came in and the person it belongs to."""
    recorded = context.engine.log.event(context.workspace, checked_id(params.id))
    person = context.engine.reader.person_of(recorded)
    shown = event_view(recorded, "" if person is None else person.id)
    return EventDetail(**msgspec.structs.asdict(shown), payload=original(context.engine.log.forms, recorded.event))
