"""What people do next: their paths from an event on, or back from one, within their sessions."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    ASKED,
    NUMBERED,
    OTHER,
    Answered,
    By,
    Most,
    Span,
    Step,
    asked,
    property_sql,
    span_sql,
    step_of,
    type_sql,
)
from threadline.capabilities.foundation.events.forms import Duration
from threadline.kernel.analytics import Sql, filled
from threadline.kernel.chart import Axis, Chart, Flow
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import BY_EVENT_TYPE, Context, always, operation
from threadline.kernel.time import parse_duration

ENDED = "(end)"
"""What follows the last event of a session in a picture; in rows it is empty, which no event is called."""
DEPTH_MAX = 10

_SQL = """
WITH $numbered,
placed AS (
  SELECT person, session, is_anchor, value, $span AS asked,
    row_number() OVER (PARTITION BY person, session ORDER BY occurred_at $order, position $order) AS place
  FROM numbered
),
anchors AS (SELECT person, session, min(place) AS place FROM placed WHERE is_anchor AND asked GROUP BY person, session),
ways AS (
  SELECT p.person, p.session, p.place - a.place AS step, p.value
  FROM placed p JOIN anchors a USING (person, session) WHERE p.place BETWEEN a.place AND a.place + $depth
),
ranked AS (
  SELECT step, value, row_number() OVER (PARTITION BY step ORDER BY count(*) DESC, value) AS rank
  FROM ways GROUP BY step, value
),
named AS (
  SELECT person, session, step, CASE WHEN rank <= $most THEN value ELSE $other END AS value
  FROM ways JOIN ranked USING (step, value)
),
moves AS (
  SELECT person, step, value AS source,
    coalesce(lead(value) OVER (PARTITION BY person, session ORDER BY step), '') AS target
  FROM named
)
FROM (
  SELECT step, source, target, count(*) AS ways, count(DISTINCT person) AS people
  FROM moves WHERE step < $depth GROUP BY step, source, target
) ORDER BY step, source = $other, source, ways DESC, target = $other, target
"""


class PathsParams(Span, kw_only=True):
    """Where the paths begin. The range of time is that of the event at which they begin."""

    start_at: Annotated[Step, Meta(description="The event that paths begin at; `*`: at the beginning of sessions.")] = (
        "*"
    )
    direction: Annotated[
        Literal["after", "before"],
        Meta(description="after: what follows its first occurrence in a session; before: what led to its last."),
    ] = "after"
    depth: Annotated[int, Meta(description="Steps from there.", ge=1, le=DEPTH_MAX)] = 4
    gap: Annotated[Duration, Meta(description="A pause of this or longer ends a session, and the path.")] = "30m"
    by: By = ""
    most: Most = 7


@key_fields("step", "source", "target", "people", "share")
class PathsRow(msgspec.Struct, kw_only=True):
    """What goes from one event to the next."""

    step: Annotated[int, Meta(description="0: from the event that the paths begin at.")]
    source: Annotated[
        str,
        Meta(description=f"The type of the event, or its value of `by`; `{OTHER}`: all rarer ones."),
        BY_EVENT_TYPE,
        ASKED,
    ]
    target: Annotated[
        str, Meta(description="The same of the next one; empty: the session ends here."), BY_EVENT_TYPE, ASKED
    ]
    ways: int
    people: Annotated[int, Meta(description="Different people who went so.")]
    share: Annotated[float, Meta(description="Of the paths that come to `source` at this step.")]


@not_personal
class Paths(Answered, kw_only=True):
    """Moves by step, the source and how frequent they are; those of step n + 1 add up to those of n that do not end."""

    rows: list[PathsRow]
    ways: Annotated[int, Meta(description="Sessions with an event that paths begin at: one path each.")]
    direction: str


def paths_picture(result: Paths) -> Chart:
    """Bands from each event to the next."""
    flows = tuple(Flow(row.step, row.source, row.target or ENDED, row.ways) for row in result.rows)
    return Chart(
        kind="flow",
        title="Paths",
        x=Axis(title="Step"),
        y=Axis(title="Paths", unit="count"),
        flows=flows,
        summary=f"{counted(result.ways, 'path')}, one for each session; what comes {result.direction} is to the right.",
    )


@operation(
    "GET /v1/analytics/paths",
    ANALYTICS_GROUP,
    is_long=always,
    example=PathsParams(start_at="product_viewed", depth=3),
    picture=paths_picture,
)
def paths(context: Context, params: PathsParams) -> Paths:
    """Follow what people do after an event, or did before it, step by step."""
    value = property_sql(params.by or "event.type", "by")
    numbered = {
        "value": Sql(value),
        "join": Sql(""),
        "anchor": Sql(step_of(params.start_at, "start_at").sql),
        "chosen": Sql(f"{type_sql('*')} AND {value} <> ''"),
        "gap": parse_duration(params.gap),
    }
    table, about = asked(
        context,
        _SQL,
        {
            "numbered": Sql(filled(NUMBERED, numbered)),
            "span": Sql(span_sql(params)),
            "depth": params.depth,
            "most": params.most,
            "other": OTHER,
            "order": Sql("ASC" if params.direction == "after" else "DESC"),
        },
    )
    coming: dict[tuple[int, str], int] = {}
    for step, source, _, ways, _ in table.rows:
        coming[step, source] = coming.get((step, source), 0) + ways
    rows = [
        PathsRow(step=step, source=source, target=target, ways=ways, people=people, share=ways / coming[step, source])
        for step, source, target, ways, people in table.rows
    ]
    all_ways = sum(ways for (step, _), ways in coming.items() if step == 0)
    return Paths(rows=rows, ways=all_ways, direction=params.direction, **about)
