"""Recording events and reading them: one by one, a person's either way, the workspace's as they commit."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import (
    Cursor,
    EventId,
    EventView,
    NativeEvent,
    PersonRef,
    Time,
    checked_id,
    event_view,
    native_event,
    read_cursor,
    time_param,
    write_cursor,
)
from threadline.kernel.event import Event, Receipt
from threadline.kernel.event_limits import too_many_events
from threadline.kernel.limits import BATCH_EVENTS_MAX, EVENTS_PAGE_MAX
from threadline.kernel.lists import comma_separated
from threadline.kernel.operation import Context, Operation
from threadline.kernel.ports import WithLog, WithReader, WithRecorder

# --- record -----------------------------------------------------------------------------------


class RecordParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Events to record. A request with an ill-formed event is refused whole; well-formed ones are judged one by one."""

    events: Annotated[list[NativeEvent], Meta(extra_json_schema={"maxItems": BATCH_EVENTS_MAX})]


class RecordResult(msgspec.Struct, kw_only=True):
    """What became of each event, in order. The answer means that what was accepted is durable."""

    receipts: list[Receipt]
    accepted: int
    duplicates: int
    conflicts: int
    rejected: int


def events_of(params: RecordParams, context: Context[WithRecorder]) -> list[Event]:
    """The events of a request, stamped with its way in; raises `EventRejected` if one is not well formed, or there
    are too many."""
    if len(params.events) > BATCH_EVENTS_MAX:
        raise too_many_events()
    return [
        native_event(
            native,
            workspace=context.workspace,
            source=context.source,
            source_type=context.source_type,
            received_at=context.engine.recorder.clock(),
            place=f"events[{index}]",
        )
        for index, native in enumerate(params.events)
    ]


def _record(context: Context[WithRecorder], params: RecordParams) -> RecordResult:
    # Nothing is recorded before every event is known to be well formed.
    events = events_of(params, context)
    receipts: list[Receipt] = []
    pairs = zip(params.events, events, strict=True)
    for expected, group in itertools.groupby(pairs, key=lambda pair: pair[0].expected):
        receipts += context.engine.recorder.record([event for _, event in group], expected=expected)
    counts = {
        status: sum(r.status == status for r in receipts)
        for status in ("accepted", "duplicate", "conflict", "rejected")
    }
    return RecordResult(
        receipts=receipts, accepted=counts["accepted"], duplicates=counts["duplicate"], conflicts=counts["conflict"],
        rejected=counts["rejected"],
    )  # fmt: skip


def _refused(result: RecordResult) -> bool:
    return bool(result.receipts) and not result.accepted + result.duplicates


RECORD = Operation(
    name="record",
    summary="Record events, each exactly once.",
    params=RecordParams,
    result=RecordResult,
    run=_record,
    method="POST",
    path="/v1/events",
    scope="write",
    example=RecordParams(
        events=[
            NativeEvent(
                type="purchase_completed", identifiers={"user_id": "42"}, key="order-1001",
                occurred_at="2026-03-01T12:00:00Z", properties={"total": 29.33, "currency": "EUR"},
            )
        ]
    ),
    refused=_refused,
)  # fmt: skip

# --- a person's events ------------------------------------------------------------------------


class EventsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
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
    ] = []
    start: Annotated[Time | None, Meta(description="Only what occurred at or after this instant.")] = None
    stop: Annotated[Time | None, Meta(description="Only what occurred before this instant.")] = None
    order: Annotated[Literal["asc", "desc"], Meta(description="asc: oldest first; desc: newest first.")] = "desc"
    cursor: Cursor = ""
    limit: Annotated[int, Meta(description="Events on a page.", ge=1, le=EVENTS_PAGE_MAX)] = 100


class EventsPage(msgspec.Struct, kw_only=True):
    """A page of a person's events by (occurred_at, id)."""

    person: str
    position: Annotated[int, Meta(description="How many events the person has; the page is true at this position.")]
    events: list[EventView]
    next: Annotated[str, Meta(description="The cursor of the next page; empty at the end.")] = ""


def _events(context: Context[WithReader], params: EventsParams) -> EventsPage:
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
    more = write_cursor(page[-1]) if len(page) == params.limit else ""
    return EventsPage(person=person.id, position=person.position, events=[event_view(r) for r in page], next=more)


def _types(params: EventsParams) -> frozenset[str]:
    """The types asked for. Any text can be a type: one with commas in it is taken as a list of them and as itself."""
    return frozenset({*params.types, params.type, *comma_separated(params.type)} - {""})


EVENTS = Operation(
    name="events",
    summary="List a person's events by time and type, forward or back.",
    params=EventsParams,
    result=EventsPage,
    run=_events,
    method="GET",
    path="/v1/people/{id}/events",
    example=EventsParams(id="user_id:42", type="purchase_completed", order="desc"),
)


class EventParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which event to read."""

    id: EventId


class Needs(WithReader, WithLog, Protocol):
    """What is needed here of the engine."""


def _event(context: Context[Needs], params: EventParams) -> EventView:
    recorded = context.engine.log.event(context.workspace, checked_id(params.id))
    person = context.engine.reader.person_of(recorded)
    return event_view(recorded, "" if person is None else person.id)


EVENT = Operation(
    name="event",
    summary="Show one event, whole, and whose it is.",
    params=EventParams,
    result=EventView,
    run=_event,
    method="GET",
    path="/v1/events/{id}",
    example=EventParams(id="0123456789abcdef0123456789abcdef"),
)

# --- the feed ---------------------------------------------------------------------------------

_LOOKED_AT_MAX = 10_000
"""Log entries looked at for one page: the feed is of all workspaces, a page of one."""


class FeedParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """From where to follow the workspace's events."""

    cursor: Annotated[
        str, Meta(description="The `next` of the previous page; empty for the beginning.", max_length=200)
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=EVENTS_PAGE_MAX)] = 100


class FeedPage(msgspec.Struct, kw_only=True):
    """Committed events in the order of commits. Keep ``next`` and ask again: nothing is ever skipped or told twice."""

    events: list[EventView]
    next: str
    more: Annotated[bool, Meta(description="Whether there may be more right now.")]


def _feed(context: Context[WithLog], params: FeedParams) -> FeedPage:
    engine, cursor = context.engine, params.cursor
    found: list[EventView] = []
    looked_at, more = 0, True
    while more and len(found) < params.limit and looked_at < _LOOKED_AT_MAX:
        page = engine.log.feed(cursor, params.limit - len(found))
        more = len(page) == params.limit - len(found)
        for each in page:
            cursor = each.cursor
            recorded = engine.log.unpack(each.entry)
            if recorded.event.workspace == context.workspace:
                found.append(event_view(recorded))
        looked_at += len(page)
    return FeedPage(events=found, next=cursor, more=more)


FEED = Operation(
    name="feed",
    summary="Follow every event of the workspace in the order of commits.",
    params=FeedParams,
    result=FeedPage,
    run=_feed,
    method="GET",
    path="/v1/feed",
    example=FeedParams(limit=100),
)
