"""What people do and spend from period to period, by the period in which they began."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.names import lacking_property
from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.operations.retention import (
    BEGUN,
    COHORTS,
    COMPLETE,
    GRID,
    CohortParams,
    cohort_parts,
)
from threadline.capabilities.ask.analytics.parts import (
    Dated,
    Per,
    Step,
    asked,
    days_of,
    step_of,
    unread_notes,
    worth_sql,
)
from threadline.capabilities.foundation.events.forms import Date
from threadline.kernel.analytics import Sql
from threadline.kernel.chart import Axis, Chart, Point, Series, formatted
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import PROPERTY, offers, refused_if
from threadline.kernel.operation import Context, always, operation

# Sums have an order: otherwise their last digits would change from answer to answer.
_SQL = f"""
WITH {COHORTS},
done AS (
  SELECT cohort, date_diff($per, cohort, $period)::BIGINT AS period, count(DISTINCT person) AS people,
    count(*) AS events, sum($worth ORDER BY position) AS value
  FROM events JOIN cohorts USING (person) WHERE $counted AND occurred_at >= entered GROUP BY ALL
),
{GRID}
SELECT cohort, size, period, coalesce(people, 0) AS people, coalesce(events, 0) AS events, coalesce(value, 0) AS value,
  sum(coalesce(value, 0)) OVER (PARTITION BY cohort ORDER BY period) AS so_far, {COMPLETE} AS complete
FROM grid LEFT JOIN done USING (cohort, period) WHERE {BEGUN}
ORDER BY cohort, period
"""  # noqa: S608 — our own parts


class CohortsParams(CohortParams, kw_only=True):
    """Who is looked at, and what of theirs is added up."""

    event: Annotated[Step, Meta(description="What is counted.")] = "purchase_completed"
    value: Annotated[
        str,
        refused_if(lacking_property),
        offers(PROPERTY),
        Meta(description="Add up this property, such as `total`; empty: count the events.", max_length=200),
    ] = ""


@key_fields("cohort", "size", "period", "people", "events", "value", "value_so_far")
class CohortsRow(msgspec.Struct, kw_only=True):
    """A cohort in a period."""

    cohort: Annotated[Date, Meta(description="The first day of the period in which its people began.")]
    size: Annotated[int, Meta(description="People who began then.")]
    period: Annotated[int, Meta(description="0 is the period in which they began.")]
    people: Annotated[int, Meta(description="How many of them had such an event in it.")]
    events: int
    value: Annotated[float, Meta(description="Of these events; without `value` their number.")]
    value_so_far: Annotated[float, Meta(description="From the beginning to the end of the period, a person of all.")]
    complete: Annotated[bool, Meta(description="Whether the period is over: until then more may come.")]


@not_personal
class Cohorts(Dated, kw_only=True):
    """Cohorts by their beginning, each by period; periods that have not begun are left out."""

    rows: list[CohortsRow]
    per: Per
    value: Annotated[str, Meta(description="As asked.")] = ""


def cohorts_picture(result: Cohorts) -> Chart:
    """A row for each cohort, with what a person has come to."""
    cohorts: dict[str, list[Point]] = {}
    for row in result.rows:
        note = f"{row.people:,} of {counted(row.size, 'person')}, {formatted(row.value, 'number')}"
        cohorts.setdefault(row.cohort, []).append(
            Point(str(row.period), row.value_so_far, is_uncertain=not row.complete, note=note)
        )
    people = sum(row.size for row in result.rows if not row.period)
    measure = f"{result.value} so far, a person" if result.value else "Events so far, a person"
    return Chart(
        kind="heat",
        title="Cohorts",
        x=Axis(title=f"{result.per.capitalize()}s after the first"),
        y=Axis(title=measure),
        series=tuple(Series(cohort, tuple(points)) for cohort, points in cohorts.items()),
        uncertain="The period is not over.",
        summary=f"{counted(people, 'person')} in {counted(len(cohorts), 'cohort')}.",
    )


@operation(
    "GET /v1/analytics/cohorts",
    ANALYTICS_GROUP,
    is_long=always,
    example=CohortsParams(first="purchase_completed", value="total", per="month", periods=6),
    picture=cohorts_picture,
)
def cohorts(context: Context, params: CohortsParams) -> Cohorts:
    """Add up what people do or spend as they age, by the period in which they began."""
    chosen, worth = step_of(params.event, "event").sql, worth_sql(params.value, 1)
    days = days_of(context, params)
    parts = cohort_parts(params, days, context.now)
    table, about = asked(context, _SQL, {**parts, "counted": Sql(chosen), "worth": worth})
    rows = [
        CohortsRow(
            cohort=cohort.isoformat(),
            size=size,
            period=period,
            people=people,
            events=events,
            value=value,
            value_so_far=so_far / size,
            complete=complete,
        )
        for cohort, size, period, people, events, value, so_far, complete in table.rows
    ]
    immature = any(not row.complete for row in rows)
    notes: tuple[str, ...] = ("Periods that are not over are marked: more may come in them.",) if immature else ()
    notes += unread_notes(context, params.value, chosen)
    return Cohorts(rows=rows, per=params.per, value=params.value, notes=notes, **days.about, **about)
