"""Who bought lately, often and for much: people scored from 1 to 5 by each, and grouped by the scores."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.names import lacking_property
from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    Answered,
    Span,
    TypeName,
    Where,
    all_of,
    asked,
    span_sql,
    type_sql,
    unread_notes,
    where_sql,
    worth_sql,
)
from threadline.capabilities.foundation.events.forms import time_param
from threadline.kernel.analytics import Sql
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import not_personal
from threadline.kernel.names import PROPERTY, offers, refused_if
from threadline.kernel.operation import Context, always, operation
from threadline.kernel.time import to_datetime

SCORES = 5
RfmGroup = Literal["champions", "loyal", "promising", "new", "waning", "at risk", "asleep"]

# People of equal values have equal scores, so that nobody is above another by their id: what counts is how many are
# strictly below. Sums have an order: otherwise their last digits would change from answer to answer.
_SQL = """
WITH people AS (
  SELECT person, max(occurred_at) AS latest, count(*) AS purchases, sum($worth ORDER BY position) AS value
  FROM events WHERE $chosen GROUP BY person
),
scored AS (
  SELECT *, (epoch_us($until) - epoch_us(latest)) // 86400000000 AS days,
    1 + ($scores * (rank() OVER (ORDER BY latest) - 1)) // count(*) OVER () AS recency,
    1 + ($scores * (rank() OVER (ORDER BY purchases) - 1)) // count(*) OVER () AS frequency,
    1 + ($scores * (rank() OVER (ORDER BY value) - 1)) // count(*) OVER () AS monetary
  FROM people
),
grouped AS (
  SELECT *, CASE WHEN recency >= 4 AND frequency >= 4 THEN 'champions' WHEN recency >= 3 AND frequency >= 4 THEN 'loyal'
    WHEN recency >= 4 AND frequency >= 2 THEN 'promising' WHEN recency >= 4 THEN 'new' WHEN recency = 3 THEN 'waning'
    WHEN frequency >= 3 THEN 'at risk' ELSE 'asleep' END AS name
  FROM scored
),
listed AS (
  SELECT * FROM grouped WHERE $group IN ('', name)
  ORDER BY recency + frequency + monetary DESC, value DESC, purchases DESC, person LIMIT $most
)
FROM (
  SELECT '' AS person, recency, frequency, avg(monetary) AS monetary, name, count(*) AS people,
    sum(purchases)::BIGINT AS purchases, sum(value ORDER BY person) AS value, NULL AS days
  FROM grouped GROUP BY recency, frequency, name
  UNION ALL BY NAME
  SELECT person, recency, frequency, monetary, name, 1 AS people, purchases, value, days FROM listed
)
ORDER BY person <> '', if(person = '', recency * 10 + frequency, recency + frequency + monetary) DESC,
  value DESC, purchases DESC, person
"""


class RfmParams(Span, kw_only=True):
    """What a purchase is, and which people are listed."""

    event: Annotated[TypeName, Meta(description="The event that is a purchase.", min_length=1)] = "purchase_completed"
    where: Where = ""
    value: Annotated[
        str,
        refused_if(lacking_property),
        offers(PROPERTY),
        Meta(description="The property with its value; empty: everybody spent 0.", max_length=200),
    ] = "total"
    group: Annotated[
        Literal["", RfmGroup], Meta(description="List people of this group only; empty: the best of all.")
    ] = ""
    most: Annotated[int, Meta(description="People who are listed.", ge=0, le=1_000)] = 100


@not_personal
class RfmRow(msgspec.Struct, kw_only=True):
    """People with the same scores for recency and frequency."""

    recency: Annotated[
        int, Meta(description="5: among the fifth who bought last; 1: of those whose purchase is oldest.")
    ]
    frequency: Annotated[int, Meta(description="5: among the fifth who bought most often.")]
    monetary: Annotated[float, Meta(description="The mean of their scores by what they spent.")]
    group: str
    people: int
    purchases: int
    value: Annotated[float, Meta(description="What they spent.")]


@not_personal
class RfmPerson(msgspec.Struct, kw_only=True):
    """A person and their scores."""

    person: str
    recency: int
    frequency: int
    monetary: int
    group: str
    days: Annotated[int, Meta(description="Whole days from the last purchase to the end of the time.")]
    purchases: int
    value: float


class Rfm(Answered, kw_only=True):
    """Cells of people, those with the best scores first."""

    rows: list[RfmRow]
    people: Annotated[list[RfmPerson], Meta(description="Those with the highest sum of scores first.")]


def rfm_picture(result: Rfm) -> Chart:
    """A field for each pair of scores, with its people."""
    cells = {(row.recency, row.frequency): row for row in result.rows}
    series = []
    for recency in range(SCORES, 0, -1):
        points = []
        for frequency in range(1, SCORES + 1):
            row = cells.get((recency, frequency))
            points.append(Point(str(frequency), row.people if row else 0, note=row.group if row else ""))
        series.append(Series(f"recency {recency}", tuple(points)))
    best = sum(row.people for row in result.rows if row.group == "champions")
    return Chart(
        kind="heat",
        title="Recency and frequency",
        x=Axis(title="Frequency"),
        y=Axis(title="People", unit="count"),
        series=tuple(series) if result.rows else (),
        summary=f"Champions: {best:,} of {counted(sum(row.people for row in result.rows), 'person')}.",
    )


@operation(
    "GET /v1/analytics/rfm",
    ANALYTICS_GROUP,
    is_long=always,
    example=RfmParams(value="total", group="at risk"),
    picture=rfm_picture,
)
def rfm(context: Context, params: RfmParams) -> Rfm:
    """Score people by recency, frequency and amount of their purchases (RFM)."""
    stop = time_param(params.stop)
    until = min(context.now if stop is None else stop, context.now)
    chosen = all_of(type_sql(params.event), where_sql(params.where), span_sql(params))
    table, about = asked(
        context,
        _SQL,
        {
            "worth": worth_sql(params.value),
            "chosen": Sql(chosen),
            "scores": SCORES,
            "group": params.group,
            "most": params.most,
            "until": to_datetime(until),
        },
    )
    rows, people = [], []
    for values in table.rows:
        row = dict(zip(table.columns, values, strict=True))
        scores = {"recency": row["recency"], "frequency": row["frequency"], "group": row["name"]}
        spent = {"purchases": row["purchases"], "value": row["value"]}
        if row["person"]:
            monetary = int(row["monetary"])
            people.append(RfmPerson(person=row["person"], monetary=monetary, days=row["days"], **scores, **spent))
        else:
            rows.append(RfmRow(people=row["people"], monetary=row["monetary"], **scores, **spent))
    is_worthless = bool(rows) and bool(params.value) and not any(row.value for row in rows)
    notes: tuple[str, ...] = (
        (f"No event has a number above 0 in `{params.value}`: give the property as `value`.",) if is_worthless else ()
    )
    notes += unread_notes(context, params.value, chosen)
    return Rfm(rows=rows, people=people, notes=notes, **about)
