"""Who comes back: people by the period in which they began, and how many of them were there in each period after."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    ByPeriod,
    Dated,
    Days,
    Per,
    Step,
    asked,
    days_of,
    span_sql,
    step_of,
)
from threadline.capabilities.foundation.events.forms import Date
from threadline.kernel.analytics import Sql
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.counted import counted
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, always, operation

PERIODS_MAX = 104

COHORTS = """entries AS (SELECT person, min(occurred_at) AS entered FROM events WHERE $first GROUP BY person),
cohorts AS (SELECT person, entered, $cohort AS cohort FROM entries WHERE $span)"""
GRID = """grid AS (
  SELECT cohort, size, unnest(range(0, $periods + 1)) AS period
  FROM (SELECT cohort, count(*) AS size FROM cohorts GROUP BY cohort)
)"""
COMPLETE = "(cohort + $units((period + 1)::INTEGER))::DATE <= $today"
BEGUN = "(cohort + $units(period::INTEGER))::DATE <= $today"
_SQL = f"""
WITH {COHORTS},
returns AS (
  SELECT DISTINCT person, date_diff($per, cohort, $period)::BIGINT AS period
  FROM events JOIN cohorts USING (person) WHERE $returning AND occurred_at >= entered
),
counted AS (
  SELECT cohort, period, count(*) AS people FROM cohorts JOIN $present USING (person) GROUP BY ALL
),
{GRID}
SELECT cohort, size, period, coalesce(people, 0) AS people, {COMPLETE} AS complete
FROM grid LEFT JOIN counted USING (cohort, period) WHERE {BEGUN}
ORDER BY cohort, period
"""  # noqa: S608 — our own parts
_BOUNDED = "returns"
# Who was there in a period counts in all periods before it.
_ROLLING = """(
    SELECT person, unnest(range(0, max(period) + 1)) AS period FROM returns GROUP BY person
  )"""


class CohortParams(ByPeriod, kw_only=True):
    """Who is looked at: those who began in the range of time."""

    first: Annotated[Step, Meta(description="A person's first event of this kind is where they begin.")] = "*"
    per: Annotated[Per, Meta(description="The length of a period.")] = "week"
    periods: Annotated[int, Meta(description="How many periods after the first.", ge=1, le=PERIODS_MAX)] = 8


class RetentionParams(CohortParams, kw_only=True):
    """Who is looked at, and what counts as coming back."""

    returning: Annotated[Step, Meta(description="What counts as being there.")] = "*"
    kind: Annotated[
        Literal["bounded", "rolling"],
        Meta(description="bounded: there in that very period; rolling: in that period or any later one."),
    ] = "bounded"


@key_fields("cohort", "size", "period", "people", "share")
class RetentionRow(msgspec.Struct, kw_only=True):
    """A cohort in a period."""

    cohort: Annotated[Date, Meta(description="The first day of the period in which its people began.")]
    size: Annotated[int, Meta(description="People who began then.")]
    period: Annotated[int, Meta(description="0 is the period in which they began.")]
    people: Annotated[int, Meta(description="How many of them were there.")]
    share: float
    complete: Annotated[bool, Meta(description="Whether the period is over: until then more may come.")]


class Retention(Dated, kw_only=True):
    """Cohorts by their beginning, each by period; periods that have not begun are left out."""

    rows: list[RetentionRow]
    per: Per
    kind: str


def cohort_parts(params: CohortParams, days: Days, now: int) -> dict[str, Any]:
    """What fills `COHORTS`, `GRID`, `COMPLETE` and `BEGUN`, and the period of an event."""
    return {
        "per": params.per,
        "units": Sql(f"to_{params.per}s"),
        "first": Sql(step_of(params.first, "first").sql),
        "span": Sql(span_sql(params, "entered")),
        "cohort": Sql(days.period_sql(params.per, days.day_sql("entered"))),
        "period": Sql(days.period_sql(params.per, days.day_sql())),
        "periods": params.periods,
        "today": days.date(now),
    }


def retention_picture(result: Retention) -> Chart:
    """A row for each cohort."""
    cohorts: dict[str, list[Point]] = {}
    for row in result.rows:
        note = f"{row.people:,} of {row.size:,}"
        cohorts.setdefault(row.cohort, []).append(
            Point(str(row.period), row.share, is_uncertain=not row.complete, note=note)
        )
    people = sum(row.size for row in result.rows if not row.period)
    return Chart(
        kind="heat",
        title="Retention",
        x=Axis(title=f"{result.per.capitalize()}s after the first"),
        y=Axis(title="Share of the cohort", unit="share"),
        series=tuple(Series(cohort, tuple(points)) for cohort, points in cohorts.items()),
        uncertain="The period is not over.",
        summary=f"{counted(people, 'person')} in {counted(len(cohorts), 'cohort')}.",
    )


@operation(
    "GET /v1/analytics/retention",
    ANALYTICS_GROUP,
    is_long=always,
    example=RetentionParams(first="*", returning="purchase_completed", per="month", periods=6),
    picture=retention_picture,
)
def retention(context: Context, params: RetentionParams) -> Retention:
    """Count who comes back, by the period in which they began."""
    present = Sql(_BOUNDED if params.kind == "bounded" else _ROLLING)
    returning = Sql(step_of(params.returning, "returning").sql)
    days = days_of(context, params)
    parts = cohort_parts(params, days, context.now)
    table, about = asked(context, _SQL, {**parts, "returning": returning, "present": present})
    rows = [
        RetentionRow(
            cohort=cohort.isoformat(), size=size, period=period, people=people, share=people / size, complete=complete
        )
        for cohort, size, period, people, complete in table.rows
    ]
    notes = ["Periods that are not over are marked: more people may come back in them."]
    if params.kind == "rolling":
        notes = ["Rolling shares of the latest periods grow with time: who comes back later counts in them as well."]
    shown = tuple(notes) if any(not row.complete for row in rows) else ()
    return Retention(rows=rows, per=params.per, kind=params.kind, notes=shown, **days.about, **about)
