"""What has changed today: people and events since midnight, beside the same hours of the day before."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import Answered, Zone, asked, zone_asked
from threadline.kernel.analytics import Sql
from threadline.kernel.calendar import Calendar
from threadline.kernel.event_type import ACTIVITY
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import EVENT_TYPE, Context, Params, always, operation
from threadline.kernel.time import to_datetime

_SQL = f"""
WITH people AS (SELECT person, min(occurred_at) AS came_at FROM events WHERE {ACTIVITY} GROUP BY person),
lately AS (
  SELECT type, person, occurred_at >= $today AS is_today, $own AS is_own FROM events
  WHERE occurred_at >= $yesterday AND occurred_at <= $now
    AND (occurred_at >= $today OR occurred_at <= $same_hour)
)
FROM (
  SELECT 'type' AS kind, type, bool_or(is_own) AS own, count(*) FILTER (is_today) AS today,
    count(*) FILTER (NOT is_today) AS before
  FROM lately GROUP BY type
  UNION ALL SELECT 'active', '', true, count(DISTINCT person) FILTER (is_today),
    count(DISTINCT person) FILTER (NOT is_today)
  FROM lately WHERE is_own
  UNION ALL SELECT 'new', '', true, count(*) FILTER (came_at >= $today AND came_at <= $now),
    count(*) FILTER (came_at >= $yesterday AND came_at <= $same_hour) FROM people
  UNION ALL SELECT 'people', '', true, count(*), 0 FROM people
) ORDER BY own DESC, today DESC, before DESC, type
"""  # noqa: S608 - the texts are our own


class Change(msgspec.Struct, kw_only=True):
    """A number of today."""

    today: Annotated[int, Meta(description="Since midnight.")]
    before: Annotated[int, Meta(description="In the same hours of the day before.")]


@key_fields("type", "today", "before")
class TypeChange(msgspec.Struct, kw_only=True):
    """Events of one type."""

    type: Annotated[str, EVENT_TYPE]
    today: Annotated[int, Meta(description="Since midnight.")]
    before: Annotated[int, Meta(description="In the same hours of the day before.")]
    own: Annotated[bool, Meta(description="Whether people did it; else Threadline noted it, or made it of that.")]


class TodayParams(Params, kw_only=True):
    """Whose midnight."""

    timezone: Zone = ""


class Today(Answered, kw_only=True):
    """What has changed since midnight."""

    timezone: Annotated[str, Meta(description="The zone whose midnight it is.")]

    people: Annotated[int, Meta(description="Everybody who ever did something.")]
    new_people: Annotated[Change, Meta(description="People whose first event of their own is of the time.")]
    active_people: Annotated[Change, Meta(description="People with an event of their own.")]
    rows: Annotated[
        list[TypeChange], Meta(description="Events by type, people's own first, then the most frequent of today.")
    ]


@operation("GET /v1/analytics/today", ANALYTICS_GROUP, is_long=always, example=TodayParams(timezone="Europe/Rome"))
def today(context: Context, params: TodayParams) -> Today:
    """Compare today with the same hours of the day before: people, new people, events by type."""
    zone = zone_asked(context, params.timezone)
    calendar = Calendar(zone)
    day = calendar.day(context.now)
    given = {
        "today": to_datetime(calendar.start(day)),
        "yesterday": to_datetime(calendar.start(day - 1)),
        "now": to_datetime(context.now),
        "same_hour": to_datetime(calendar.day_before(context.now)),
        "own": Sql(ACTIVITY),
    }
    table, about = asked(context, _SQL, given)
    changes = {kind: Change(today=today, before=before) for kind, _, _, today, before in table.rows}
    rows = [
        TypeChange(type=type, own=own, today=today, before=before)
        for kind, type, own, today, before in table.rows
        if kind == "type"
    ]
    return Today(
        people=changes["people"].today,
        new_people=changes["new"],
        active_people=changes["active"],
        rows=rows,
        timezone=zone,
        **about,
    )
