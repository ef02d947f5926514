"""How often people come, how long they stay and how much they do in one visit."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    ASKED,
    EMPTY_LEFT_OUT,
    NAMED,
    NUMBERED,
    OTHER,
    By,
    ByPeriod,
    Dated,
    Most,
    Step,
    Value,
    asked,
    days_of,
    periods_sql,
    span_sql,
    step_of,
    value_of,
)
from threadline.capabilities.foundation.events.forms import Date, Duration
from threadline.kernel.analytics import Sql, filled
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.counted import counted
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import BY_EVENT_TYPE, Context, always, operation
from threadline.kernel.time import parse_duration

# A period without a session is a row with 0: without it a line would be drawn straight across.
_SQL = """
WITH $numbered,
sessions AS (
  SELECT person, $period AS period, coalesce(value, '') AS value, seconds, events
  FROM (
    SELECT person, min(occurred_at) AS entered, (max(moment) - min(moment)) / 1e6 AS seconds,
      count(*) AS events, max(value) FILTER (WHERE begins) AS value
    FROM numbered GROUP BY person, session
  ) WHERE $span
),
best AS (SELECT value FROM sessions WHERE value <> '' GROUP BY value ORDER BY count(*) DESC, value LIMIT $most),
named AS (SELECT * REPLACE ($named AS value) FROM sessions),
counted AS (
  SELECT period, value, count(*) AS sessions, count(DISTINCT person) AS people, sum(events)::BIGINT AS events,
    count(*) FILTER (WHERE events = 1) AS bounced, quantile_cont(seconds, [0.5, 0.95]) AS seconds
  FROM named GROUP BY GROUPING SETS ((period, value), ())
),
bounds AS (
  SELECT *, $filled AS filled FROM (SELECT min(period) AS first, max(period) AS last FROM sessions)
  WHERE first IS NOT NULL
),$periods,
grid AS (SELECT period, value FROM periods CROSS JOIN (SELECT DISTINCT value FROM named))
SELECT period, value, coalesce(sessions, 0) AS sessions, coalesce(people, 0) AS people, coalesce(events, 0) AS events,
  coalesce(bounced, 0) AS bounced, seconds, (period + INTERVAL 1 $per)::DATE <= $today AS complete,
  (FROM (SELECT filled FROM bounds)) AS filled
FROM (SELECT * FROM grid LEFT JOIN counted USING (period, value) UNION ALL SELECT * FROM counted WHERE period IS NULL)
ORDER BY period NULLS FIRST, value = $other, value
"""


class SessionsParams(ByPeriod, kw_only=True):
    """What belongs to a session. The range of time is that in which it began."""

    events: Annotated[Step, Meta(description="Which events make up sessions.")] = "*"
    gap: Annotated[Duration, Meta(description="A pause of this or longer ends a session.")] = "30m"
    by: By = ""
    most: Most = 7


class SessionsTotal(msgspec.Struct, kw_only=True):
    """Sessions, and what they were like."""

    sessions: int
    people: Annotated[int, Meta(description="Different people who had one.")]
    events: Annotated[int, Meta(description="In all of them.")]
    bounced: Annotated[int, Meta(description="Sessions of one event.")]
    seconds_p50: Annotated[float | None, Meta(description="From the first event to the last: the median.")]
    seconds_p95: float | None


@key_fields("period", "sessions", "people", "events", "bounced", "seconds_p50")
class SessionsRow(SessionsTotal, kw_only=True):
    """Those that began in a period, by value of the break-down."""

    period: Annotated[Date, Meta(description="Its first day.")]
    value: Annotated[
        str,
        Meta(
            description="Of the break-down, at the session's first event; empty without one; "
            f"`{OTHER}` for all further ones."
        ),
        BY_EVENT_TYPE,
        ASKED,
    ]
    complete: Annotated[bool, Meta(description="Whether the period is over.")]


class Sessions(Dated, kw_only=True):
    """By period, from the first with a session to the last, and value."""

    rows: list[SessionsRow]
    all: SessionsTotal


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    median, long = row["seconds"] or (None, None)
    counts = {name: row[name] for name in ("sessions", "people", "events", "bounced")}
    return {**counts, "seconds_p50": median, "seconds_p95": long}


def sessions_picture(result: Sessions) -> Chart:
    """A line for each value of the break-down."""
    lines: dict[str, list[Point]] = {}
    for row in result.rows:
        events, bounced = row.events / max(row.sessions, 1), row.bounced / max(row.sessions, 1)
        note = f"{events:.1f} events each, {bounced:.0%} of one event"
        lines.setdefault(row.value, []).append(
            Point(row.period, row.sessions, is_uncertain=not row.complete, note=note)
        )
    of = result.all
    bounced = of.bounced / of.sessions if of.sessions else 0.0
    return Chart(
        kind="lines",
        title="Sessions",
        x=Axis(title="Period"),
        y=Axis(title="Sessions", unit="count"),
        series=tuple(Series(value, tuple(points)) for value, points in lines.items()),
        uncertain="The period is not over.",
        summary=f"{counted(of.sessions, 'session')} of {counted(of.people, 'person')}; {bounced:.0%} have one event.",
    )


@operation(
    "GET /v1/analytics/sessions",
    ANALYTICS_GROUP,
    is_long=always,
    example=SessionsParams(gap="30m", per="week", by="context.campaign.source"),
    picture=sessions_picture,
)
def sessions(context: Context, params: SessionsParams) -> Sessions:
    """Count visits: how many, how long they last and how many events they have."""
    value, days = value_of(params.by) if params.by else Value("''"), days_of(context, params)
    numbered = {
        "value": Sql(value.text),
        "join": Sql(value.join),
        "anchor": True,
        "chosen": Sql(step_of(params.events, "events").sql),
        "gap": parse_duration(params.gap),
    }
    table, about = asked(
        context,
        _SQL,
        {
            "numbered": Sql(filled(NUMBERED, numbered)),
            "span": Sql(span_sql(params, "entered")),
            "named": NAMED,
            "most": params.most,
            "period": Sql(days.period_sql(params.per, days.day_sql("entered"))),
            **periods_sql(params.per),
            "other": OTHER,
            "today": days.date(context.now),
        },
    )
    total, *records = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    rows = [
        SessionsRow(period=row["period"].isoformat(), value=row["value"], complete=row["complete"], **_figures(row))
        for row in records
    ]
    notes = ["The last period is not over."] if any(not row.complete for row in rows) else []
    notes += [] if all(record["filled"] for record in records) else [EMPTY_LEFT_OUT]
    return Sessions(rows=rows, all=SessionsTotal(**_figures(total)), notes=tuple(notes), **days.about, **about)
