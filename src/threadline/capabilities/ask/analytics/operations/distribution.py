"""How a feature is spread over people, and how far that differs from another time or another segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.drift import Drift, drift_of
from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import OTHER, Answered, Most, Span, all_of, asked
from threadline.capabilities.foundation.events.forms import time_param
from threadline.capabilities.foundation.events.parameters import Start, Stop
from threadline.capabilities.profile.features.operations.vector import chosen
from threadline.capabilities.profile.segments.definition import SECTION_NAME
from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT
from threadline.kernel.analytics import Sql, filled, literal
from threadline.kernel.applied import IndexPart
from threadline.kernel.chart import Axis, Chart, Point, Series, formatted
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import free, not_personal
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, always, operation
from threadline.kernel.time import to_datetime

COMPARED, BASELINE = "compared", "baseline"
BINS = 20
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FEATURE_LENGTH_MAX = 100
VALUES_OF = (
    "Each person counts with the value at the end of the last day, within the time, on which they had an event. What "
    "time alone has changed since then is not in it."
)

_SIDE = """
  SELECT $side AS side, person, arg_max_null($column, day) AS value FROM feature_vectors
  WHERE $chosen GROUP BY person
"""
# Membership is what the events say: who left and entered at one instant is out, as everywhere.
_MEMBERS = f"""person IN (
    SELECT person FROM events
    WHERE type IN ('{SEGMENT_ENTERED}', '{SEGMENT_LEFT}')
      AND json_extract_string(properties, '/segment') = $segment AND $until
    GROUP BY person
    HAVING max(occurred_at) FILTER (type = '{SEGMENT_ENTERED}')
      > coalesce(max(occurred_at) FILTER (type = '{SEGMENT_LEFT}'), '-infinity'::TIMESTAMPTZ)
  )"""  # noqa: S608 — names of our own
# A bin is found by its edges as they are shown, so that no rounding puts a value into the bin beside its own. What the
# drift is measured by are the tenths of the baseline: cuts at which many people stand are one.
_SQL = """
WITH sides AS ($sides),
known AS (
  SELECT side, person, value, if(typeof(value) IN ('BIGINT', 'DOUBLE'), try_cast(value AS DOUBLE), NULL) AS number,
    if(typeof(value) IN ('BIGINT', 'DOUBLE'), NULL, value::VARCHAR) AS text
  FROM sides
),
spread AS (
  SELECT min(number) AS low, max(number) AS high,
    greatest((high - low) / $bins, 1e-9, abs(low) * 1e-12, abs(high) * 1e-12) AS raw,
    if(bool_and(number = floor(number)), 1, 0) AS least, pow(10, floor(log10(raw))) AS power,
    CASE WHEN raw <= power THEN 1 WHEN raw <= 2 * power THEN 2 WHEN raw <= 5 * power THEN 5 ELSE 10 END AS factor,
    greatest(power * factor, least) AS step
  FROM known
),
edges AS (
  SELECT round(number * step, 12) AS low, round((number + 1) * step, 12) AS high FROM (
    SELECT step, unnest(range(floor(low / step)::BIGINT - 1, floor(high / step)::BIGINT + 2)) AS number
    FROM spread WHERE low IS NOT NULL
  )
),
filled AS (
  SELECT side, e.low, count(*) AS people FROM known k ASOF JOIN edges e ON k.number >= e.low GROUP BY side, e.low
),
bins AS (
  SELECT side, low, high, coalesce(people, 0) AS people FROM edges CROSS JOIN (SELECT DISTINCT side FROM sides)
  LEFT JOIN filled USING (side, low)
  WHERE low BETWEEN (SELECT min(low) FROM filled) AND (SELECT max(low) FROM filled)
),
best AS (SELECT text FROM known WHERE text IS NOT NULL GROUP BY text ORDER BY count(*) DESC, text LIMIT $most),
named AS (
  SELECT side, CASE WHEN text IN (FROM best) THEN text ELSE $other END AS text FROM known WHERE text IS NOT NULL
),
cuts AS (
  SELECT list_sort(list_distinct(quantile_disc(number, $tenths))) AS cuts FROM known WHERE side = $baseline
),
tenths AS (
  SELECT side, len(list_filter(cuts, lambda cut: cut < number)) AS tenth, count(*) AS people
  FROM known, cuts WHERE number IS NOT NULL GROUP BY side, tenth
)
FROM (
  SELECT 'side' AS kind, side, count(*) AS people, count(*) - count(value) AS missing,
    avg(number ORDER BY person) AS mean, min(number) AS low, max(number) AS high,
    quantile_cont(number, $quantiles) AS quantiles
  FROM known GROUP BY side
  UNION ALL BY NAME SELECT 'bin' AS kind, * FROM bins
  UNION ALL BY NAME SELECT 'text' AS kind, side, text, count(*) AS people FROM named GROUP BY side, text
  UNION ALL BY NAME SELECT 'tenth' AS kind, side, tenth AS low, people FROM tenths
) ORDER BY kind, side DESC, low, text = $other, text
"""


class DistributionParams(Span, kw_only=True):
    """Which feature, for which people and when, and what to compare with, over whole days of UTC or any range."""

    feature: Annotated[
        str, names_a("feature"), Meta(description="Its name.", min_length=1, max_length=FEATURE_LENGTH_MAX)
    ]
    segment: Annotated[str, names_a("segment"), Meta(description="Only members of this segment.", max_length=64)] = ""
    baseline_start: Start = None
    baseline_stop: Annotated[Stop, Meta(description="Compare with how it was before this instant.")] = None
    baseline_segment: Annotated[
        str, names_a("segment"), Meta(description="Compare with the members of this segment.", max_length=64)
    ] = ""
    most: Most = 10


class Bin(msgspec.Struct, kw_only=True):
    """People whose value lies in a range, or is a text."""

    low: Annotated[float | None, Meta(description="From this value on; null for a text.")] = None
    high: Annotated[float | None, Meta(description="Up to this value, without it.")] = None
    value: Annotated[
        str,
        Meta(description=f"The text; `{OTHER}`: all rarer ones; empty for a number."),
        free(values=(OTHER,), asked_by="feature"),
    ] = ""
    people: int
    baseline: Annotated[int | None, Meta(description="People of the baseline; null without one.")] = None


@not_personal
class Side(msgspec.Struct, kw_only=True):
    """The people of a side, and their values in numbers, each null for texts."""

    side: str
    people: int
    missing: Annotated[int, Meta(description="Those of them who have no value.")]
    mean: float | None
    least: float | None
    p05: float | None
    p25: float | None
    p50: Annotated[float | None, Meta(description="The median; quantiles are exact, and lie between two values.")]
    p75: float | None
    p95: float | None
    most: float | None


class Distribution(Answered, kw_only=True):
    """A histogram for numbers, the most frequent values for texts."""

    rows: list[Bin]
    feature: str
    sides: list[Side]
    drift: Annotated[Drift | None, Meta(description="How far both sides are apart; null without a baseline.")] = None


def distribution_picture(result: Distribution) -> Chart:
    """The people of each bin; beside a baseline their shares, for the sides are seldom of one size."""
    is_number = bool(result.rows) and result.rows[0].low is not None
    sides = [("", [row.people for row in result.rows])]
    if any(row.baseline is not None for row in result.rows):
        sides = [(COMPARED, sides[0][1]), (BASELINE, [row.baseline or 0 for row in result.rows])]
    totals = {side.side: max(side.people, 1) for side in result.sides}
    series = tuple(
        Series(
            side,
            tuple(
                Point(
                    row.value if row.low is None else row.low,
                    count / totals.get(side, 1) if side else count,
                    high=row.high,
                    note=counted(count, "person"),
                )
                for row, count in zip(result.rows, counts, strict=True)
            ),
        )
        for side, counts in sides
    )
    people = result.sides[0].people if result.sides else 0
    summary = f"The values of {counted(people, 'person')}."
    if result.drift is not None:
        summary += f" Population stability index {formatted(result.drift.index, 'number')}: {result.drift.verdict}."
    return Chart(
        kind="histogram" if is_number else "bars",
        title=result.feature,
        x=Axis(title=result.feature),
        y=Axis(title="Share of people" if sides[0][0] else "People", unit="share" if sides[0][0] else "count"),
        series=series if result.rows else (),
        summary=summary,
    )


def _read(params: DistributionParams) -> tuple[IndexPart, ...]:
    return tuple(IndexPart(SECTION_NAME, name) for name in (params.segment, params.baseline_segment) if name)


@operation(
    "GET /v1/analytics/distribution",
    ANALYTICS_GROUP,
    relies_on=("segments",),
    relied_on=_read,
    is_long=always,
    example=DistributionParams(feature="monetary_total", baseline_stop="2026-01-01T00:00:00Z"),
    picture=distribution_picture,
)
def distribution(context: Context, params: DistributionParams) -> Distribution:
    """Show how a feature is spread over people, and how far it has drifted."""
    chosen(context.engine.catalogue.of_nobody("features", context.now), [params.feature])
    is_compared = bool(params.baseline_segment or params.baseline_start or params.baseline_stop)
    sides = [_side(COMPARED, params, params.segment, params.start, params.stop)]
    if is_compared:
        # What the baseline does not say is as it is on the other side.
        times = (params.baseline_start, params.baseline_stop)
        start, stop = times if any(times) else (params.start, params.stop)
        sides.append(_side(BASELINE, params, params.baseline_segment or params.segment, start, stop))
    table, about = asked(
        context,
        _SQL,
        {
            "sides": Sql("\n  UNION ALL ".join(sides)),
            "bins": BINS,
            "most": params.most,
            "other": OTHER,
            "baseline": BASELINE if is_compared else COMPARED,
            "quantiles": list(QUANTILES),
            "tenths": [tenth / 10 for tenth in range(1, 10)],
        },
    )
    records = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    summaries = {row["side"]: _summary(row) for row in records if row["kind"] == "side"}
    counts = [row for row in records if row["kind"] in ("bin", "text")]
    rows: dict[tuple[Any, str], Bin] = {}
    for row in counts:
        text = row["text"] or ""
        at = rows.setdefault(
            (row["low"], text),
            Bin(low=row["low"], high=row["high"], value=text, people=0, baseline=0 if is_compared else None),
        )
        if row["side"] == COMPARED:
            at.people = row["people"]
        else:
            at.baseline = row["people"]
    ordered = sorted(rows.values(), key=lambda row: (row.low or 0, row.value == OTHER, row.value))
    drift = _drift(records, summaries) if is_compared else None
    return Distribution(
        rows=ordered, feature=params.feature, sides=list(summaries.values()), drift=drift, notes=(VALUES_OF,), **about
    )


def _side(side: str, params: DistributionParams, segment: str, start: str | None, stop: str | None) -> str:
    first, last = time_param(start), time_param(stop)
    column = f"f_{params.feature}".replace('"', '""')
    parts = ["true" if first is None else f"day::TIMESTAMPTZ >= {literal(to_datetime(first))}"]
    until = "true"
    if last is not None:
        parts.append(f"(day + 1)::TIMESTAMPTZ <= {literal(to_datetime(last))}")
        until = f"occurred_at < {literal(to_datetime(last))}"
    if segment:
        parts.append(filled(_MEMBERS, {"segment": segment, "until": Sql(until)}))
    return filled(_SIDE.strip(), {"side": side, "column": Sql(f'"{column}"'), "chosen": Sql(all_of(*parts))})


def _summary(row: dict[str, Any]) -> Side:
    quantiles = row["quantiles"] or [None] * len(QUANTILES)
    names = ("p05", "p25", "p50", "p75", "p95")
    return Side(
        side=row["side"],
        people=row["people"],
        missing=row["missing"],
        mean=row["mean"],
        least=row["low"],
        most=row["high"],
        **dict(zip(names, quantiles, strict=True)),
    )


def _drift(records: Sequence[dict[str, Any]], sides: dict[str, Side]) -> Drift | None:
    """By the tenths of the baseline or the texts, and by who has no value."""
    if len(sides) < 2:
        return None
    counts: dict[Any, list[int]] = {None: [sides[COMPARED].missing, sides[BASELINE].missing]}
    for row in records:
        if row["kind"] in ("tenth", "text"):
            counts.setdefault((row["low"], row["text"]), [0, 0])[row["side"] == BASELINE] += row["people"]
    return drift_of([(now, before) for now, before in counts.values() if now or before])
