"""How often something happened, day by day, and by how many people."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    EMPTY_LEFT_OUT,
    NAMED,
    OTHER,
    By,
    ByPeriod,
    Dated,
    Days,
    Most,
    Per,
    TypeName,
    Value,
    Where,
    all_of,
    asked,
    days_of,
    periods_sql,
    span_sql,
    type_sql,
    value_of,
    where_sql,
)
from threadline.capabilities.foundation.events.forms import Date, time_param
from threadline.kernel.analytics import Sql, literal
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import free
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import BY_EVENT_TYPE, Context, always, operation

# A period without an event is a row with 0: without it a line would be drawn straight across.
_SQL = """
WITH chosen AS (
  SELECT $period AS period, person, $value AS value FROM events $join
  WHERE $chosen
),
best AS (SELECT value FROM chosen WHERE value <> '' GROUP BY value ORDER BY count(*) DESC, value LIMIT $most),
counted AS (
  SELECT period, $named AS value, count(*) AS events, count(DISTINCT person) AS people
  FROM chosen GROUP BY ALL
),
bounds AS (
  SELECT *, $filled AS filled FROM (
    SELECT $first AS first, $last AS last FROM (SELECT min(period) AS first, max(period) AS last FROM chosen)
    WHERE first IS NOT NULL
  )
),$periods
SELECT period, value, coalesce(events, 0) AS events, coalesce(people, 0) AS people,
  (period + INTERVAL 1 $per)::DATE <= $today AS complete, (FROM (SELECT filled FROM bounds)) AS filled
FROM periods CROSS JOIN (SELECT DISTINCT value FROM counted) LEFT JOIN counted USING (period, value)
ORDER BY value = $other, value, period
"""


class TrendParams(ByPeriod, kw_only=True):
    """What to count, and by what."""

    event: Annotated[TypeName, Meta(description="Only events of this type; empty: all of the person's own.")] = ""
    where: Where = ""
    by: By = ""
    most: Most = 7


@key_fields("period", "value", "events", "people")
class TrendRow(msgspec.Struct, kw_only=True):
    """A period, and a value of the break-down."""

    period: Annotated[Date, Meta(description="Its first day.")]
    value: Annotated[
        str,
        Meta(description=f"Of the break-down; empty without one; `{OTHER}` for all further ones."),
        BY_EVENT_TYPE,
        free(values=(OTHER,), asked_by="by", type_by="event"),
    ]
    events: int
    people: Annotated[int, Meta(description="Different people with such an event in the period.")]
    complete: Annotated[bool, Meta(description="Whether the period is over.")]


class Trend(Dated, kw_only=True):
    """Events and people by period, and by value in the order of their names."""

    rows: list[TrendRow]


def trend_picture(result: Trend) -> Chart:
    """A line for each value of the break-down."""
    lines: dict[str, list[Point]] = {}
    for row in result.rows:
        lines.setdefault(row.value, []).append(
            Point(row.period, row.events, is_uncertain=not row.complete, note=counted(row.people, "person"))
        )
    events = sum(row.events for row in result.rows)
    return Chart(
        kind="lines",
        title="Events over time",
        x=Axis(title="Period"),
        y=Axis(title="Events", unit="count"),
        series=tuple(Series(value, tuple(points)) for value, points in lines.items()),
        uncertain="The period is not over.",
        summary=f"{counted(events, 'event')}.",
    )


@operation(
    "GET /v1/analytics/trend",
    ANALYTICS_GROUP,
    is_long=always,
    example=TrendParams(event="purchase_completed", per="week", by="plan"),
    picture=trend_picture,
)
def trend(context: Context, params: TrendParams) -> Trend:
    """Count an event and the people who had it, by day, week or month."""
    value, days = value_of(params.by) if params.by else Value("''"), days_of(context, params)
    start, stop = time_param(params.start), time_param(params.stop)
    last = None if stop is None else min(stop - 1, context.now)
    chosen = all_of(type_sql(params.event), where_sql(params.where), span_sql(params))
    table, about = asked(
        context,
        _SQL,
        {
            "period": Sql(days.period_sql(params.per, days.day_sql())),
            "value": Sql(value.text),
            "join": Sql(value.join),
            "chosen": Sql(chosen),
            **periods_sql(params.per),
            "most": params.most,
            "other": OTHER,
            "named": NAMED,
            "first": Sql("first" if start is None else _period_of(start, params.per, days)),
            "last": Sql("last" if last is None else _period_of(last, params.per, days)),
            "today": days.date(context.now),
        },
    )
    rows = [
        TrendRow(period=period.isoformat(), value=value, events=events, people=people, complete=complete)
        for period, value, events, people, complete, _ in table.rows
    ]
    notes = ["The last period is not over."] if any(not row.complete for row in rows) else []
    notes += [] if all(is_filled for *_, is_filled in table.rows) else [EMPTY_LEFT_OUT]
    return Trend(rows=rows, notes=tuple(notes), **days.about, **about)


def _period_of(at: int, per: Per, days: Days) -> str:
    return days.period_sql(per, literal(days.date(at)))
