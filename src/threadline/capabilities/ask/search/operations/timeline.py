"""A person's timeline: every event with what it is, what brought it about, and what it led to."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.search.documents import ids_named
from threadline.capabilities.ask.search.linked import Network
from threadline.capabilities.ask.search.operations import SEARCH_GROUP
from threadline.capabilities.decide.rules.projection import decision_of
from threadline.capabilities.foundation.events.forms import (
    EventView,
    PersonRef,
    event_view,
    read_cursor,
    time_param,
    write_cursor,
)
from threadline.capabilities.foundation.events.parameters import Next, TimePage, next_of
from threadline.kernel.disclosure import not_personal
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, operation
from threadline.kernel.policy import TIMER_FIRED

LED_TO_MAX = 500
"""Events that the events of one page led to."""


class TimelineParams(TimePage, kw_only=True):
    """Whose timeline, and which part of it."""

    id: PersonRef
    limit: Annotated[int, Meta(description="How many on a page.", ge=1, le=100)] = 20


What = Literal["event", "decision", "timer", "outcome", "derived"]


@key_fields("what", "event")
@not_personal
class Entry(msgspec.Struct, kw_only=True):
    """An event of a timeline."""

    event: EventView
    what: Annotated[
        What,
        Meta(
            description="decision: of a rule; timer: time alone brought it about; outcome: of something sent; derived: "
            "Threadline added it because of another event; event: anything else."
        ),
    ]
    because_of: Annotated[list[str], Meta(description="The ids that it names, its cause first.")]
    led_to: Annotated[list[str], Meta(description="The ids of events that name it, the newest first.")]


class TimelinePage(msgspec.Struct, kw_only=True):
    """A page of a timeline, the newest first."""

    person: str
    entries: list[Entry]
    next: Next = ""
    position: Annotated[int, Meta(description="Of the log's entries so many were searched for `led_to`.")]
    complete: Annotated[bool, Meta(description="Whether that is the whole log.")]


@operation("GET /v1/people/{id}/timeline", SEARCH_GROUP, example=TimelineParams(id="user_id:42"))
def timeline(context: Context, params: TimelineParams) -> TimelinePage:
    """Show a person's events with what caused each and what followed from it."""
    reader = context.engine.reader
    person = reader.person(context.workspace, params.id)
    page = reader.events(
        person,
        start=time_param(params.start),
        stop=time_param(params.stop),
        after=read_cursor(params.cursor),
        limit=params.limit,
        reverse=True,
        skip_damaged=True,
    )
    network = Network(context, LED_TO_MAX)
    led_to: dict[str, list[str]] = defaultdict(list)
    for later in network.naming([event.id for event in page]):
        for id in ids_named(later):
            led_to[id].append(later.id)
    entries = [
        Entry(event=event_view(event), what=_what(event), because_of=ids_named(event), led_to=led_to[event.id])
        for event in page
    ]
    return TimelinePage(
        person=person.id,
        entries=entries,
        next=next_of(page, params.limit, write_cursor),
        position=network.progress.position,
        complete=network.progress.is_complete,
    )


def _what(recorded: Recorded) -> What:
    event = recorded.event
    if decision_of(recorded) is not None:
        return "decision"
    if event.type == TIMER_FIRED:
        return "timer"
    if not event.is_activity and "effect" in event.properties:
        return "outcome"
    return "derived" if recorded.cause else "event"
