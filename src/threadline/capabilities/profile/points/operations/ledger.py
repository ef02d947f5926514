"""The ledger of a person, line by line."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import (
    EventId,
    Instant,
    PersonRef,
    instant,
    read_cursor,
    write_cursor,
)
from threadline.capabilities.foundation.events.parameters import Next, Page
from threadline.capabilities.profile.points.events import LEDGER, POINTS_ADJUSTED, POINTS_EARNED, amount_of
from threadline.capabilities.profile.points.operations import POINTS_GROUP
from threadline.kernel.disclosure import NOT_PERSONAL, PERSONAL
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, operation


class LedgerParams(Page, kw_only=True):
    """Whose ledger, and which page of it."""

    id: PersonRef


@key_fields("points", "reason", "occurred_at", "type")
class LedgerLine(msgspec.Struct, kw_only=True):
    """One line: an event and what it adds to the balance."""

    id: EventId
    type: str
    points: Annotated[int, Meta(description="What it adds; negative for what was spent, taken or has expired.")]
    occurred_at: Instant
    cause: Annotated[str, Meta(description="The event that made it; for an adjustment empty.")]
    rule: Annotated[str, Meta(description="By which rule it was earned.")] = ""
    table: Annotated[str, Meta(description="The version of the table with that rule."), NOT_PERSONAL] = ""
    reason: Annotated[str, PERSONAL] = ""


class LedgerPage(msgspec.Struct, kw_only=True):
    """Lines, the newest first."""

    person: str
    lines: list[LedgerLine]
    next: Next = ""


@operation("GET /v1/people/{id}/points/ledger", POINTS_GROUP, example=LedgerParams(id="user_id:42", limit=20))
def ledger(context: Context, params: LedgerParams) -> LedgerPage:
    """List the lines of a person's ledger of points, the newest first."""
    engine = context.engine
    person = engine.reader.person(context.workspace, params.id)
    after = read_cursor(params.cursor)
    lines: list[LedgerLine] = []
    for recorded in engine.reader.all_events(
        person, types=LEDGER, after=after, reverse=True, size=params.limit, counting=True
    ):
        if (points := amount_of(recorded.event)) is not None:
            lines.append(_line(recorded, points))
            if len(lines) == params.limit:
                return LedgerPage(person=person.id, lines=lines, next=write_cursor(recorded))
    return LedgerPage(person=person.id, lines=lines)


def _line(recorded: Recorded, points: int) -> LedgerLine:
    event = recorded.event
    details = {name: event.properties.get(name) for name in ("rule", "table", "reason")}
    texts = {name: value for name, value in details.items() if isinstance(value, str)}
    adds = event.type in (POINTS_EARNED, POINTS_ADJUSTED)
    return LedgerLine(
        id=recorded.id,
        type=event.type,
        points=points if adds else -points,
        occurred_at=instant(event.occurred_at),
        cause=recorded.cause,
        **texts,
    )
