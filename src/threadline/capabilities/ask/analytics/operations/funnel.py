"""How many people get from one step to the next, and how long that takes them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    ASKED,
    NAMED,
    OTHER,
    Answered,
    By,
    Most,
    Span,
    Step,
    Value,
    all_of,
    asked,
    span_sql,
    step_of,
    value_of,
)
from threadline.capabilities.foundation.events.forms import Duration
from threadline.kernel.analytics import Sql, filled
from threadline.kernel.chart import Axis, Chart, Point, Series, formatted
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import NOT_PERSONAL, not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import ANALYTICS_STEPS_MAX
from threadline.kernel.operation import BY_EVENT_TYPE, EVENT_TYPE, Context, always, operation
from threadline.kernel.time import duration_text, parse_duration

# Instants are microseconds: DuckDB takes the difference of two with a time zone by a calendar, which is slower than all
# the rest. Events of one instant are in the order in which they were recorded. One number has both, so that ASOF can
# compare it.
_KEY = "epoch_us(occurred_at)::HUGEINT * 1099511627776 + position"
_FIRST = f"""s1 AS MATERIALIZED (
  SELECT person, {_KEY} AS key, epoch_us(occurred_at) AS moment, epoch_us(occurred_at) AS entered, $value AS value
  FROM events $join WHERE $chosen
)"""  # noqa: S608
# The latest entry before an event is the best one for it, and the last step-1 chain before it has the latest entry:
# `entered` never falls from one event of a step to the next. So one look back finds whether there is any chain.
_NEXT = f"""$this AS MATERIALIZED (
  SELECT e.person, e.key, e.moment, b.entered
  FROM (SELECT person, {_KEY} AS key, epoch_us(occurred_at) AS moment FROM events WHERE $chosen) e
  ASOF JOIN $before b ON b.person = e.person AND b.key < e.key
  WHERE e.moment <= b.entered + $window
)"""  # noqa: S608
_ARRIVED = "SELECT $step AS step, person, arg_min(moment - entered, key) / 1e6 AS seconds FROM $this GROUP BY person"
_SQL = """
WITH $steps,
entries AS (SELECT person, arg_min(coalesce(value, ''), key) AS value FROM s1 GROUP BY person),
best AS (SELECT value FROM entries WHERE value <> '' GROUP BY value ORDER BY count(*) DESC, value LIMIT $most),
groups AS (SELECT person, $named AS value FROM entries),
arrived AS ($arrived),
counted AS (
  SELECT step, value, count(*) AS people, quantile_cont(seconds, [0.25, 0.5, 0.75, 0.9]) AS seconds
  FROM arrived JOIN groups USING (person) GROUP BY ALL
)
SELECT step, value, coalesce(people, 0) AS people, seconds,
  (SELECT count(DISTINCT person) FROM s1 ANTI JOIN $last USING (person) WHERE moment > $now - $window) AS undecided
FROM (SELECT unnest(range(1, $count + 1)) AS step) CROSS JOIN (SELECT DISTINCT value FROM groups)
LEFT JOIN counted USING (step, value)
ORDER BY value = $other, value, step
"""


class FunnelParams(Span, kw_only=True):
    """The steps, and who is looked at: those who entered in the range of time, whenever they came further."""

    steps: Annotated[
        list[Step],
        Meta(
            description="Events in their order; others may lie between.", min_length=2, max_length=ANALYTICS_STEPS_MAX
        ),
    ]
    window: Annotated[Duration, Meta(description="From the first step to the last at most.")] = "7d"
    by: By = ""
    most: Most = 7


@key_fields("step", "name", "people", "share_of_first", "share_of_previous", "seconds_p50")
class FunnelRow(msgspec.Struct, kw_only=True):
    """A step, and a value of the break-down."""

    value: Annotated[
        str,
        Meta(
            description="Of the break-down, at the person's first entry; empty without one; "
            f"`{OTHER}` for all further ones."
        ),
        BY_EVENT_TYPE,
        ASKED,
    ]
    step: Annotated[int, Meta(description="From 1 on.")]
    name: Annotated[str, EVENT_TYPE, NOT_PERSONAL]
    people: Annotated[int, Meta(description="People who came as far as this.")]
    share_of_first: Annotated[float, Meta(description="Of those who entered.")]
    share_of_previous: Annotated[float, Meta(description="Of those who reached the step before.")]
    seconds_p25: Annotated[float | None, Meta(description="From the entry to here: a quarter was as fast.")]
    seconds_p50: Annotated[float | None, Meta(description="The median.")]
    seconds_p75: float | None
    seconds_p90: float | None


@not_personal
class Funnel(Answered, kw_only=True):
    """How many people came how far, by value of the break-down and step."""

    rows: list[FunnelRow]
    window: str
    undecided: Annotated[
        int, Meta(description="People who entered so lately that they may still reach the last step.")
    ] = 0


def funnel_picture(result: Funnel) -> Chart:
    """The people at each step, by value of the break-down."""
    groups: dict[str, list[FunnelRow]] = {}
    for row in result.rows:
        groups.setdefault(row.value, []).append(row)
    series = [
        Series(value, tuple(Point(row.name, row.people, note=formatted(row.share_of_first, "share")) for row in rows))
        for value, rows in groups.items()
    ]
    entered = sum(rows[0].people for rows in groups.values())
    came_through = sum(rows[-1].people for rows in groups.values())
    window = duration_text(parse_duration(result.window))
    people = f"{counted(entered, 'person')} ({formatted(came_through / entered if entered else 0.0, 'share')})"
    return Chart(
        kind="funnel",
        title="Funnel",
        x=Axis(title="Step"),
        y=Axis(title="People", unit="count"),
        series=tuple(series),
        summary=f"{came_through:,} of {people} came through all steps within {window}.",
    )


@operation(
    "GET /v1/analytics/funnel",
    ANALYTICS_GROUP,
    is_long=always,
    example=FunnelParams(steps=["product_viewed", "checkout_started", "purchase_completed"], window="7d"),
    picture=funnel_picture,
)
def funnel(context: Context, params: FunnelParams) -> Funnel:
    """Count who gets from step to step within a time, and how long it takes."""
    steps = [step_of(step, "steps") for step in params.steps]
    value = value_of(params.by) if params.by else Value("''")
    window = parse_duration(params.window)
    first = {"value": Sql(value.text), "join": Sql(value.join), "chosen": Sql(all_of(steps[0].sql, span_sql(params)))}
    events = [filled(_FIRST, first)]
    for number, step in enumerate(steps[1:], 2):
        tables = {"this": Sql(f"s{number}"), "before": Sql(f"s{number - 1}")}
        events.append(filled(_NEXT, {**tables, "chosen": Sql(step.sql), "window": window}))
    arrived = [filled(_ARRIVED, {"step": at, "this": Sql(f"s{at}")}) for at in range(1, len(steps) + 1)]
    table, about = asked(
        context,
        _SQL,
        {
            "steps": Sql(",\n".join(events)),
            "arrived": Sql("\n  UNION ALL ".join(arrived)),
            "named": NAMED,
            "window": window,
            "last": Sql(f"s{len(steps)}"),
            "count": len(steps),
            "most": params.most,
            "other": OTHER,
            "now": context.now,
        },
    )
    rows: list[FunnelRow] = []
    entered = 0
    reached = table.rows or [(number, "", 0, None, 0) for number in range(1, len(steps) + 1)]
    undecided = reached[0][-1]
    for number, group, people, seconds, _ in reached:
        entered = people if number == 1 else entered
        before = people if number == 1 else rows[-1].people
        quantiles = seconds if number > 1 and seconds else (None,) * 4
        rows.append(
            FunnelRow(
                value=group,
                step=number,
                name=steps[number - 1].name,
                people=people,
                share_of_first=people / max(entered, 1),
                share_of_previous=people / max(before, 1),
                seconds_p25=quantiles[0],
                seconds_p50=quantiles[1],
                seconds_p75=quantiles[2],
                seconds_p90=quantiles[3],
            )
        )
    notes = (
        (f"{counted(undecided, 'person')} entered less than {duration_text(window)} ago and may still convert.",)
        if undecided
        else ()
    )
    return Funnel(rows=rows, window=params.window, undecided=undecided, notes=notes, **about)
