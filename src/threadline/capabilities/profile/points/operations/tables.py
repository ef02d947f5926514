"""The operations that depend on what is declared: a person's days in the calendar, and the tables in force."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef, instant
from threadline.capabilities.profile.points.definition import Points, Rule, Table
from threadline.capabilities.profile.points.operations import POINTS_GROUP
from threadline.capabilities.profile.points.operations.balance import PointsDay, points_view
from threadline.kernel.calendar import Calendar, day_text
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, Params, shaped_operation
from threadline.kernel.time import EARLIEST, format_duration


class HistoryParams(Params, kw_only=True):
    """Whose days, and how many."""

    id: PersonRef
    days: Annotated[int, Meta(description="Today and the days before it.", ge=1, le=31)] = 30


class HistoryResult(msgspec.Struct, kw_only=True):
    """Every day, also those without a line; the newest first."""

    person: str
    timezone: Annotated[str, Meta(description="The zone whose days these are.")]
    days: list[PointsDay]


@shaped_operation("GET /v1/people/{id}/points/history", POINTS_GROUP, example=HistoryParams(id="user_id:42", days=30))
def history(calendar: Calendar, context: Context, params: HistoryParams) -> HistoryResult:
    """List a person's last days with what was earned, spent, adjusted and what expired on each."""
    person = context.engine.reader.person(context.workspace, params.id)
    by_day = {day["day"]: day for day in points_view(context, person, context.now)["days"]}
    today = calendar.day(context.now)
    texts = [day_text(today - back) for back in range(params.days)]
    nothing = {"earned": 0, "spent": 0, "adjusted": 0, "expired": 0}
    days = [msgspec.convert(by_day.get(text, {"day": text, **nothing}), PointsDay) for text in texts]
    return HistoryResult(person=person.id, timezone=calendar.timezone, days=days)


@not_personal
class RuleView(msgspec.Struct, kw_only=True):
    """What one event earns."""

    name: str
    types: Annotated[list[str], Meta(description="Every event type that earns by it.")]
    points: int
    per_day: Annotated[int | None, Meta(description="How often it earns in a day; null: no limit of its own.")]
    cooldown: Annotated[str | None, Meta(description="How far apart two events that earn by it must be.")]


@key_fields("version", "starts_at", "rules")
class TableView(msgspec.Struct, kw_only=True):
    """A table and the instant from which it is in force, until the next one is."""

    version: str
    starts_at: Annotated[Instant, Meta(description="The year 1 for one that always was.")]
    rules: list[RuleView]


@not_personal
class TablesResult(msgspec.Struct, kw_only=True):
    """What is declared about points."""

    tables: list[TableView]
    multipliers: Annotated[list[dict[str, str]], Meta(description="by, from, times; the largest that applies counts.")]
    events_per_hour: int
    back: Annotated[str, Meta(description="How old an event may be when it becomes known, and still earn.")]
    expires_after: Annotated[str | None, Meta(description="After the end of their month; null: never.")]
    timezone: str


@shaped_operation("GET /v1/points/tables", POINTS_GROUP)
def tables(points: Points, context: Context, params: NoParams) -> TablesResult:
    """List what earns points, by version of the table, and the limits."""
    after = points.expires_after
    return TablesResult(
        tables=[_table(table) for table in points.tables],
        multipliers=[
            {"by": ".".join(multiplier.path), "from": str(multiplier.least), "times": str(multiplier.times)}
            for multiplier in points.multipliers
        ],
        events_per_hour=points.events_per_hour,
        back=format_duration(points.back),
        expires_after=None if after is None else format_duration(after),
        timezone=points.timezone,
    )


def _table(table: Table) -> TableView:
    rules = sorted(table.rules.values(), key=lambda rule: rule.name)
    return TableView(
        version=table.version, starts_at=instant(table.starts_at or EARLIEST), rules=[_rule(rule) for rule in rules]
    )


def _rule(rule: Rule) -> RuleView:
    cooldown = None if rule.cooldown is None else format_duration(rule.cooldown)
    return RuleView(name=rule.name, types=list(rule.types), points=rule.points, per_day=rule.per_day, cooldown=cooldown)
