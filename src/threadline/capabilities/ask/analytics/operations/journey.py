"""How many people a journey has taken along which arrow, and at which step they left it before its end."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import Answered, Span, asked, span_sql
from threadline.capabilities.reach.journeys.events import JOURNEY_ENTERED, RUN_EVENTS
from threadline.capabilities.reach.journeys.operations import Name
from threadline.capabilities.reach.journeys.projection import COMPLETED
from threadline.capabilities.reach.journeys.reacting import ENDINGS
from threadline.kernel.analytics import Sql, listed
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.operation import Context, always, operation

# A run is all events with its id, numbered by `n`. What leads on begins with the step at which the run waited; the path
# of a single mail on another event does not, and is no step of anybody's way. Where it was left is its last step: the
# one that it ended with, as an exit step, or, where something else ended it, the one at which it waited.
_SQL = """
WITH told AS (
  SELECT json_extract_string(properties, '/run') AS run, json_extract_string(properties, '/n')::BIGINT AS n, type,
    occurred_at, coalesce(from_json(json_extract(properties, '/path'), '["VARCHAR"]'), []) AS path,
    coalesce(json_extract_string(properties, '/step'), '') AS step,
    coalesce(json_extract_string(properties, '/reason'), '') AS reason,
    coalesce(json_extract_string(properties, '/interrupted')::BOOLEAN, false) AS interrupted
  FROM events
  WHERE type IN $types AND json_extract_string(properties, '/journey') = $journey
),
walked AS (
  SELECT * REPLACE (CASE WHEN coalesce(lag(step) OVER run, '') IN ('', path[1]) THEN path ELSE [] END AS path)
  FROM told WINDOW run AS (PARTITION BY run ORDER BY n)
),
chosen AS (SELECT DISTINCT run FROM told WHERE type = $entered AND $span),
runs AS (
  SELECT run, flatten(list(path ORDER BY n)) AS path, coalesce(arg_max(step, n) FILTER (step <> ''), '') AS waiting,
    arg_max(reason, n) AS reason, arg_max(interrupted OR len(path) = 0, n) AS from_outside
  FROM walked SEMI JOIN chosen USING (run) GROUP BY run
),
ways AS (
  SELECT run, reason, CASE
    WHEN reason = $completed THEN path || ['']
    WHEN reason <> '' AND NOT from_outside THEN path
    ELSE path || [waiting]
  END AS way FROM runs
),
reached AS (SELECT run, way[place] AS source, way[place + 1] AS target
  FROM ways, unnest(range(1, len(way) + 1)) places(place))
FROM (
  SELECT 'step' AS what, source AS step, '' AS other, count(DISTINCT run) AS runs FROM reached GROUP BY ALL
  UNION ALL SELECT 'arrow', source, target, count(DISTINCT run) FROM reached WHERE target IS NOT NULL GROUP BY ALL
  UNION ALL SELECT 'left', way[-1], reason, count(*) FROM ways WHERE reason NOT IN ('', $completed) GROUP BY ALL
  UNION ALL SELECT 'all', '', '', count(*) FROM runs
) ORDER BY what, step, other
"""


class JourneyFlowParams(Span, kw_only=True):
    """Which journey. The range of time is that in which people entered it."""

    journey: Name


class StepFlow(msgspec.Struct, kw_only=True):
    """Results of the people who came to a step."""

    step: str
    reached: int
    left: Annotated[int, Meta(description="Who left the journey here, before its end.")] = 0
    reasons: Annotated[dict[str, int], Meta(description="Why they left -> how many."), ENDINGS] = {}


class Arrow(msgspec.Struct, kw_only=True):
    """From one step to the next."""

    step: str
    next: Annotated[str, Meta(description="Empty: the end.")]
    runs: int


class JourneyFlow(Answered, kw_only=True):
    """A journey in numbers, of all its versions. Somebody who entered twice counts twice."""

    journey: str
    entered: int
    completed: int
    left: Annotated[int, Meta(description="Ended before the end, for whatever reason.")]
    under_way: int
    steps: Annotated[list[StepFlow], Meta(description="Steps that somebody came to, as they are called in events.")]
    arrows: list[Arrow]


def flow_picture(result: JourneyFlow) -> Chart:
    """How many came to each step."""
    points = tuple(Point(step.step, step.reached, note=f"{step.left:,} left here") for step in result.steps)
    return Chart(
        kind="bars",
        title=f"Journey {result.journey}",
        x=Axis(title="Step"),
        y=Axis(title="People", unit="count"),
        series=(Series("reached", points),),
        summary=f"{result.entered:,} entered, {result.completed:,} completed it, {result.left:,} left before it.",
    )


@operation(
    "GET /v1/analytics/journey",
    ANALYTICS_GROUP,
    is_long=always,
    example=JourneyFlowParams(journey="welcome"),
    picture=flow_picture,
)
def journey(context: Context, params: JourneyFlowParams) -> JourneyFlow:
    """Count who came to each step of a journey, by which path, and where people left it."""
    given = {
        "types": listed(RUN_EVENTS),
        "journey": params.journey,
        "entered": JOURNEY_ENTERED,
        "completed": COMPLETED,
        "span": Sql(span_sql(params)),
    }
    table, about = asked(context, _SQL, given)
    by_kind: dict[str, dict[tuple[str, str], int]] = {}
    for what, step, other, runs in table.rows:
        by_kind.setdefault(what, {})[step, other] = runs
    left, reasons = by_kind.get("left", {}), dict[str, dict[str, int]]()
    for (step, reason), runs in left.items():
        reasons.setdefault(step, {})[reason] = runs
    entered, completed = by_kind["all"]["", ""], by_kind.get("step", {}).get(("", ""), 0)
    return JourneyFlow(
        journey=params.journey,
        entered=entered,
        completed=completed,
        left=sum(left.values()),
        under_way=entered - completed - sum(left.values()),
        steps=[
            StepFlow(step=step, reached=runs, left=sum(reasons.get(step, {}).values()), reasons=reasons.get(step, {}))
            for (step, _), runs in by_kind.get("step", {}).items()
            if step
        ],
        arrows=[Arrow(step=step, next=next, runs=runs) for (step, next), runs in by_kind.get("arrow", {}).items()],
        **about,
    )
