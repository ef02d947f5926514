"""What became of the mails of a template, a journey or a broadcast: the events, and their counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant, time_param
from threadline.capabilities.foundation.events.parameters import Next, TimePage, TimeRange, checked_cursor, page_of
from threadline.capabilities.reach.feedback.counting import LINKS_MAX, Counts, LinkClicks, PartCounts, count
from threadline.capabilities.reach.feedback.operations import FEEDBACK_GROUP
from threadline.capabilities.reach.feedback.rows import LISTED, NAME_LENGTH_MAX, SUBJECTS, Found, Subject, rows_of
from threadline.kernel.disclosure import PERSONAL, SENTENCE, not_personal
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Choice, Context, operation
from threadline.kernel.ports import Person

_CURSOR = re.compile(r"[0-9a-f]{16}\.[0-9a-f]{32}")
_PAGE_ROWS = 100
Name = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
TYPES = tuple(sorted(LISTED))
_ONE = Choice(SUBJECTS, required=True)


class FeedbackEventsParams(TimePage, kw_only=True):
    """Of which mails, and which page."""

    template: Annotated[Name | None, names_a("template")] = None
    journey: Annotated[Name | None, names_a("journey")] = None
    broadcast: Annotated[Name | None, names_a("broadcast")] = None
    type: Annotated[Literal["", *TYPES], Meta(description="Only events of this type.")] = ""  # type: ignore[valid-type]


@key_fields("at", "type", "address", "template", "link", "reason")
@not_personal
class MailEventView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that happened to a mail."""

    id: Annotated[str, Meta(description="The id of the event.")]
    type: str
    at: Instant
    person: str
    message: str
    address: Annotated[str, PERSONAL] = ""
    template: str = ""
    step: str = ""
    arm: str = ""
    machine: bool = False
    why: Annotated[str, SENTENCE] = ""
    link: Annotated[str, PERSONAL] = ""
    bounce: Annotated[str, SENTENCE] = ""
    reason: Annotated[str, Meta(description="Why a mail was skipped."), SENTENCE] = ""
    fetch: Annotated[str, Meta(description="What a machine or a repetition asked for: opened or clicked.")] = ""
    count: Annotated[int, Meta(description="How often.")] = 1
    journey: Annotated[str, Meta(description="The journey that the mail belongs to.")] = ""
    broadcast: Annotated[str, Meta(description="The broadcast that it belongs to.")] = ""


class FeedbackEventsPage(msgspec.Struct, kw_only=True):
    """Events, the newest first."""

    events: list[MailEventView]
    next: Next = ""


class FeedbackCountersParams(TimeRange, kw_only=True):
    """Of which mails."""

    template: Annotated[Name | None, names_a("template")] = None
    journey: Annotated[Name | None, names_a("journey")] = None
    broadcast: Annotated[Name | None, names_a("broadcast")] = None


class FeedbackCounters(msgspec.Struct, kw_only=True):
    """Counts of all results of these mails."""

    counts: Counts
    parts: Annotated[list[PartCounts], Meta(description="The same for each template, step and arm.")]
    links: Annotated[
        list[LinkClicks], Meta(description=f"Clicks of people by link, the most clicked first, {LINKS_MAX} at most.")
    ] = []


@operation(
    "GET /v1/feedback/events",
    FEEDBACK_GROUP,
    choices=(_ONE,),
    example=FeedbackEventsParams(template="welcome", type="mail_opened", start="2026-03-01"),
)
def events(context: Context, params: FeedbackEventsParams) -> FeedbackEventsPage:
    """List the results of the mails of a template, a journey or a broadcast."""
    cursor = checked_cursor(params.cursor, _CURSOR)
    after = f"{cursor}\0" if cursor else ""
    rows = (row for row in _rows(context, params, after, _PAGE_ROWS) if params.type in ("", row.row.type))
    page, following = page_of(rows, params.limit, lambda row: row.cursor)
    people = context.engine.reader.by_threads([row.row.thread for row in page])
    events = context.engine.log.events(context.workspace, [row.event for row in page])
    shown = [_view(people, row, events.get(row.event)) for row in page]
    return FeedbackEventsPage(events=shown, next=following)


@operation(
    "GET /v1/feedback/counters", FEEDBACK_GROUP, choices=(_ONE,), example=FeedbackCountersParams(broadcast="april")
)
def counters(context: Context, params: FeedbackCountersParams) -> FeedbackCounters:
    """Count the results of the mails of a template, a journey or a broadcast."""
    counts, parts, links = count(row.row for row in _rows(context, params, "", 1_000))
    return FeedbackCounters(counts=counts, parts=parts, links=links)


def _rows(
    context: Context, params: FeedbackEventsParams | FeedbackCountersParams, after: str, size: int
) -> Iterator[Found]:
    subject, name = _subject(params)
    start, stop = time_param(params.start), time_param(params.stop)
    return rows_of(context.engine.store, context.workspace, subject, name, start, stop, after, size)


def _subject(params: Any) -> tuple[Subject, str]:
    for subject in SUBJECTS:
        if (name := getattr(params, subject)) is not None:
            return subject, name
    raise InvalidValue(str(_ONE))


def _view(people: Mapping[str, Person], record: Found, recorded: Recorded | None) -> MailEventView:
    row = record.row
    properties = {} if recorded is None else recorded.event.properties
    journey, broadcast = (properties.get(name) for name in ("journey", "broadcast"))
    person = people.get(row.thread)
    return MailEventView(
        id=record.event,
        type=row.type,
        at=instant(row.at),
        person="" if person is None else person.id,
        message=row.message,
        address=row.address,
        template=row.template,
        step=row.step,
        arm=row.arm,
        machine=row.machine,
        why=row.why,
        link=row.link,
        bounce=row.bounce,
        reason=row.reason,
        fetch=row.fetch,
        count=row.count,
        journey=journey if isinstance(journey, str) else "",
        broadcast=broadcast if isinstance(broadcast, str) else "",
    )
