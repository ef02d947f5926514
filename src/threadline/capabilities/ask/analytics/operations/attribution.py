"""Which channels deserve the credit for what was bought, by six models side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.names import lacking_property
from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    NAMED,
    OTHER,
    Answered,
    Most,
    Span,
    Step,
    all_of,
    asked,
    property_sql,
    span_sql,
    step_of,
    unread_notes,
    worth_sql,
)
from threadline.capabilities.ask.analytics.removal import Move, removal_effects
from threadline.capabilities.foundation.events.forms import Duration
from threadline.kernel.analytics import Sql
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import free
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import PROPERTY, offers, refused_if
from threadline.kernel.operation import Context, always, operation
from threadline.kernel.time import parse_duration

MODELS = ("first", "last", "linear", "position", "decay", "markov")

# A channel that is in no way to a conversion can still lead to one that is: it has a row, for its credit by markov.
# A touch of the instant of a conversion counts if it was recorded before it, or is the conversion itself. Sums have an
# order: otherwise their last digits would change from answer to answer.
_SQL = """
WITH conversions AS (
  SELECT person, position, epoch_us(occurred_at) AS converted, $worth AS worth, $span AS asked
  FROM events WHERE $converts
),
touches AS (
  SELECT person, position, epoch_us(occurred_at) AS moment, $channel AS value, $span AS asked FROM events WHERE $touches
),
pairs AS (
  SELECT t.person, t.position, t.moment, t.value, c.position AS path, c.converted, c.worth, c.asked
  FROM touches t JOIN conversions c ON c.person = t.person AND t.moment <= c.converted
    AND t.moment >= c.converted - $window AND (t.moment < c.converted OR t.position <= c.position)
  WHERE t.value <> ''
),
walked AS (
  SELECT person, path, value, moment, position, worth, true AS is_won FROM pairs WHERE asked
  UNION ALL
  SELECT person, 0, value, moment, position, 0, false FROM touches ANTI JOIN pairs USING (person, position)
  WHERE asked AND value <> ''
),
best AS (SELECT value FROM walked GROUP BY value ORDER BY count(*) DESC, value LIMIT $most),
weighed AS (
  SELECT *, $named AS channel,
    pow(0.5, (max(moment) OVER (PARTITION BY is_won, person, path) - moment) / $half_life) AS weight
  FROM walked
),
steps AS (
  SELECT path, channel, worth, is_won, weight, row_number() OVER ordered AS place,
    lead(channel) OVER ordered AS following, count(*) OVER whole AS places, sum(weight) OVER whole AS weights
  FROM weighed
  WINDOW ordered AS (PARTITION BY is_won, person, path ORDER BY moment, position),
    whole AS (
      PARTITION BY is_won, person, path ORDER BY moment, position
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
),
moves AS (
  SELECT NULL AS source, channel AS target, is_won FROM steps WHERE place = 1
  UNION ALL
  SELECT channel, following, is_won FROM steps
)
SELECT 'channel' AS about, channel AS source, NULL AS target, true AS is_won, count(*) FILTER (WHERE is_won) AS times,
  sum(worth * (place = 1)::INT ORDER BY path, place) AS first,
  sum(worth * (place = places)::INT ORDER BY path, place) AS last,
  sum(worth / places ORDER BY path, place) AS linear,
  sum(worth * CASE WHEN places <= 2 THEN 1 / places WHEN place IN (1, places) THEN 0.4 ELSE 0.2 / (places - 2) END
    ORDER BY path, place) AS position,
  sum(worth * weight / weights ORDER BY path, place) AS decay
FROM steps GROUP BY channel
UNION ALL BY NAME
SELECT 'move' AS about, source, target, is_won, count(*) AS times FROM moves GROUP BY ALL
UNION ALL BY NAME
SELECT 'all' AS about, count(*) AS times, sum(worth ORDER BY position) AS first FROM conversions WHERE asked
UNION ALL BY NAME
SELECT 'credited' AS about, count(*) AS times, sum(worth ORDER BY position) AS first
FROM conversions SEMI JOIN pairs ON pairs.path = conversions.position WHERE asked
ORDER BY about, source, target, is_won
"""


class AttributionParams(Span, kw_only=True):
    """What a conversion is, those of the range of time, and what a touch is."""

    event: Annotated[Step, Meta(description="What counts as a conversion.")] = "purchase_completed"
    channel: Annotated[
        str,
        refused_if(lacking_property),
        offers(PROPERTY),
        Meta(
            description="The property that names a touch's channel, such as `context.campaign.source`; events without "
            "it are no touches.",
            min_length=1,
            max_length=200,
        ),
    ] = "context.campaign.source"
    touches: Annotated[Step, Meta(description="Which events can be touches.")] = "*"
    window: Annotated[Duration, Meta(description="How long before a conversion a touch may lie.")] = "30d"
    half_life: Annotated[Duration, Meta(description="Of the model decay: a touch this much older has half.")] = "7d"
    value: Annotated[
        str,
        refused_if(lacking_property),
        offers(PROPERTY),
        Meta(
            description="The conversion's property with its value, such as `total`: credits are shares of its sum; "
            "empty: of the number of conversions.",
            max_length=200,
        ),
    ] = ""
    most: Most = 15


@key_fields("channel", "touches", "linear", "position", "markov")
class AttributionRow(msgspec.Struct, kw_only=True):
    """A channel, and its credit by each model."""

    channel: Annotated[
        str, Meta(description=f"`{OTHER}`: all further ones."), free(values=(OTHER,), asked_by="channel")
    ]
    touches: Annotated[int, Meta(description="Touches before conversions; one counts for each that it precedes.")]
    first: Annotated[float, Meta(description="All credit to the first touch.")]
    last: Annotated[float, Meta(description="All to the last.")]
    linear: Annotated[float, Meta(description="The same to each.")]
    position: Annotated[float, Meta(description="0.4 to the first, 0.4 to the last, the rest to those between.")]
    decay: Annotated[float, Meta(description="By age before the last touch, halved with every half-life.")]
    markov: Annotated[float, Meta(description="By how many conversions fewer there would be without the channel.")]
    removal: Annotated[float, Meta(description="The share of conversions that would be lost without the channel.")]


class Attribution(Answered, kw_only=True):
    """Channels with most credit by the model linear first; each model's credits add up to ``credited``."""

    rows: list[AttributionRow]
    conversions: Annotated[int, Meta(description="In the range of time.")]
    with_touches: Annotated[int, Meta(description="Of these, those with a touch in their window.")]
    total: Annotated[float, Meta(description="The number of conversions, or the sum of their value.")]
    credited: Annotated[float, Meta(description="Of this, what belongs to conversions with a touch.")]


def attribution_picture(result: Attribution) -> Chart:
    """Bars for each channel, one for each model."""
    series = tuple(
        Series(model, tuple(Point(row.channel, getattr(row, model)) for row in result.rows)) for model in MODELS
    )
    return Chart(
        kind="bars",
        title="Attribution",
        x=Axis(title="Channel"),
        y=Axis(title="Credit"),
        series=series,
        summary=f"{result.with_touches:,} of {counted(result.conversions, 'conversion')} had a touch before.",
    )


@operation(
    "GET /v1/analytics/attribution",
    ANALYTICS_GROUP,
    is_long=always,
    example=AttributionParams(event="purchase_completed", channel="context.campaign.source", value="total"),
    picture=attribution_picture,
)
def attribution(context: Context, params: AttributionParams) -> Attribution:
    """Credit conversions to the channels before them, by six models."""
    event, touches = step_of(params.event, "event"), step_of(params.touches, "touches")
    table, about = asked(
        context,
        _SQL,
        {
            "worth": worth_sql(params.value, 1),
            "span": Sql(span_sql(params)),
            "converts": Sql(event.sql),
            "channel": Sql(property_sql(params.channel, "channel")),
            "touches": Sql(touches.sql),
            "named": NAMED,
            "window": parse_duration(params.window),
            "most": params.most,
            "half_life": parse_duration(params.half_life),
        },
    )
    records = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    sums = {record["about"]: (record["times"], record["first"] or 0.0) for record in records}
    conversions, total = sums["all"]
    with_touches, credited = sums["credited"]
    removal = removal_effects(
        Move(record["source"], record["target"], record["is_won"], record["times"])
        for record in records
        if record["about"] == "move"
    )
    lost = sum(removal.values())
    rows = [
        AttributionRow(
            channel=record["source"],
            touches=record["times"],
            removal=removal[record["source"]],
            markov=credited * removal[record["source"]] / lost if lost else 0.0,
            **{name: record[name] for name in MODELS[:-1]},
        )
        for record in records
        if record["about"] == "channel"
    ]
    rows.sort(key=lambda row: (-row.linear, row.channel))
    return Attribution(
        rows=rows,
        conversions=conversions,
        with_touches=with_touches,
        total=total,
        credited=credited,
        notes=(
            *_notes(conversions - with_touches),
            *unread_notes(context, params.value, all_of(event.sql, span_sql(params))),
        ),
        **about,
    )


def _notes(untouched: int) -> Iterable[str]:
    yield "Credit says which touches came before, not that they are the reason: an experiment says that."
    if untouched:
        yield f"{counted(untouched, 'conversion')} had no touch in their window; no channel has credit for them."
