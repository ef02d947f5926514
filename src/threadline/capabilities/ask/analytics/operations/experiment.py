"""What an experiment has shown so far: its arms compared, in a way that may be looked at every day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.arms import Assignment, assignment_of
from threadline.capabilities.ask.analytics.names import lacking_in_step, lacking_property
from threadline.capabilities.ask.analytics.operations import ANALYTICS_GROUP
from threadline.capabilities.ask.analytics.parts import (
    Answered,
    Span,
    Step,
    asked,
    span_sql,
    step_of,
    unread_notes,
    worth_sql,
)
from threadline.capabilities.ask.analytics.sequential import (
    MISMATCH_BELOW,
    Sample,
    difference,
    ratio_p,
    shares,
)
from threadline.capabilities.foundation.events.forms import Duration
from threadline.capabilities.reach.broadcasts.events import HOLDOUT
from threadline.kernel.analytics import Sql
from threadline.kernel.chart import Axis, Chart, Point, Series, formatted
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import NOT_PERSONAL, free
from threadline.kernel.errors import InvalidValue
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import ANALYTICS_VALUES_MAX
from threadline.kernel.names import PROPERTY, names_a, offers, refused_if
from threadline.kernel.operation import EVENT_TYPE, Choice, Context, always, operation
from threadline.kernel.time import duration_text, parse_duration

FEW = 30
"""People with and without a conversion, of whom an arm needs as many before the limit theorem is near."""

# Whose window is not over yet may still convert, and would count as if they had not. Sums have an order: otherwise
# their last digits would change from answer to answer.
_SQL = """
WITH drawn AS (SELECT person, position, occurred_at, $since AS since, $arm AS arm FROM events WHERE $assignment),
assigned AS (
  SELECT person, min(since) AS entered, min(arm) AS arm, count(DISTINCT arm) AS arms
  FROM drawn WHERE arm <> '' GROUP BY person HAVING $span
),
wins AS (
  SELECT a.person, count(*) AS wins, sum($worth ORDER BY e.position) AS value
  FROM assigned a JOIN events e USING (person)
  WHERE $metric AND epoch_us(e.occurred_at) >= a.entered AND epoch_us(e.occurred_at) < a.entered + $window
    AND e.position NOT IN (SELECT position FROM drawn)
  GROUP BY a.person
),
outcomes AS (
  SELECT person, arm, arms, entered + $window <= $now AS is_over, if(wins IS NULL, 0, 1) AS converted,
    coalesce($outcome, 0)::DOUBLE AS outcome
  FROM assigned LEFT JOIN wins USING (person)
)
SELECT arm, count(*) FILTER (WHERE arms = 1) AS people, count(*) FILTER (WHERE arms > 1) AS crossed,
  count(*) FILTER (WHERE arms = 1 AND NOT is_over) AS undecided,
  count(*) FILTER (WHERE arms = 1 AND is_over AND converted = 1) AS conversions,
  avg(outcome ORDER BY person) FILTER (WHERE arms = 1 AND is_over) AS mean,
  var_samp(outcome ORDER BY person) FILTER (WHERE arms = 1 AND is_over) AS variance
FROM outcomes GROUP BY arm ORDER BY arm
"""


class ExperimentParams(Span, kw_only=True):
    """Who was assigned to what, and what counts. The range of time is that of the assignment."""

    broadcast: Annotated[
        str,
        names_a("broadcast"),
        Meta(description="The arms of this broadcast, its holdout among them.", max_length=64),
    ] = ""
    journey: Annotated[
        str, names_a("journey"), Meta(description="This journey against its holdout.", max_length=64)
    ] = ""
    step: Annotated[str, Meta(description="The variants that this step of the journey sends.", max_length=64)] = ""
    assignment: Annotated[
        str,
        EVENT_TYPE,
        refused_if(lacking_in_step),
        Meta(description="The event that assigns somebody: a type, or JSON with conditions.", max_length=10_000),
    ] = ""
    arm: Annotated[
        str,
        refused_if(lacking_property),
        offers(PROPERTY),
        Meta(description="The property of that event with the name of the arm.", max_length=200),
    ] = "arm"
    metric: Annotated[Step, Meta(description="The event that counts, after the assignment.")] = "purchase_completed"
    value: Annotated[
        str,
        refused_if(lacking_property),
        offers(PROPERTY),
        Meta(description="Compare the sum of this property by person; empty: who had the event.", max_length=200),
    ] = ""
    window: Annotated[
        Duration, Meta(description="How long after the assignment, or after a broadcast's mail is due, it counts.")
    ] = "14d"
    control: Annotated[
        str, Meta(description=f"The arm to compare with; without it `{HOLDOUT}`, or the first by name.", max_length=200)
    ] = ""
    weights: Annotated[
        list[str],
        Meta(
            description="The shares meant, such as `a=1`; without them as declared, or equal.",
            max_length=ANALYTICS_VALUES_MAX,
        ),
    ] = msgspec.field(default_factory=list)
    confidence: Annotated[int, Meta(description="Of the intervals, in per cent.", ge=50, le=99)] = 95
    planned: Annotated[
        int,
        Meta(description="People of two arms at whom the interval is tightest; do not change it while it runs.", ge=2),
    ] = 1_000


ARM = free("arm", values=(HOLDOUT,), asked_by="arm")
"""Marks the name of an arm, which is whatever the property of the assignment holds that was asked for."""


@key_fields("arm", "people", "conversions", "mean", "difference", "p")
class ExperimentRow(msgspec.Struct, kw_only=True):
    """An arm, and its difference from the control."""

    arm: Annotated[str, ARM]
    people: Annotated[int, Meta(description="Assigned to it, and to no other.")]
    undecided: Annotated[int, Meta(description="Those whose window is not over: they are not in the figures.")]
    conversions: Annotated[int, Meta(description="People who had the event within their window.")]
    mean: Annotated[float | None, Meta(description="The share who had it, or the mean value of a person.")]
    difference: Annotated[float | None, Meta(description="From the control; null for the control itself.")] = None
    low: Annotated[float | None, Meta(description="The interval holds at all looks together.")] = None
    high: float | None = None
    lift: Annotated[float | None, Meta(description="The difference as a share of the control's mean.")] = None
    p: Annotated[float | None, Meta(description="Always valid: how seldom chance alone ever comes so far.")] = None


class SampleRatio(msgspec.Struct, kw_only=True):
    """Whether people came to the arms in the shares meant."""

    expected: Annotated[dict[str, float], Meta(description="The shares meant."), ARM]
    p: Annotated[float, Meta(description="The chance of numbers as far from them.")]
    mismatch: Annotated[bool, Meta(description=f"Below {MISMATCH_BELOW}: something assigns or records wrongly.")]


class Experiment(Answered, kw_only=True):
    """The arms, the control first."""

    rows: list[ExperimentRow]
    control: Annotated[str, ARM]
    metric: Annotated[str, EVENT_TYPE, NOT_PERSONAL]
    crossed: Annotated[int, Meta(description="People who were assigned to several arms; left out.")]
    ratio: SampleRatio
    value: Annotated[str, Meta(description="As asked."), NOT_PERSONAL] = ""


class _Arm(NamedTuple):
    """A row of the query."""

    arm: str
    people: int
    crossed: int
    undecided: int
    conversions: int
    mean: float | None
    variance: float | None

    @property
    def sample(self) -> Sample:
        return Sample(self.people - self.undecided, self.mean or 0.0, self.variance or 0.0)


def experiment_picture(result: Experiment) -> Chart:
    """The difference of each arm from the control, with its interval."""
    is_share = not result.value
    compared = [row for row in result.rows if row.arm != result.control]
    points = tuple(
        Point(
            row.arm,
            row.difference,
            row.low,
            row.high,
            is_uncertain=bool(row.undecided) or result.ratio.mismatch,
            note="" if row.mean is None else f"mean {formatted(row.mean, 'share' if is_share else 'number')}",
        )
        for row in compared
    )
    sure = [row.arm for row in compared if row.low is not None and row.high is not None and row.low * row.high > 0]
    summary = (
        f"{', '.join(sure)} differ from {result.control}." if sure else f"No arm differs from {result.control} yet."
    )
    if result.ratio.mismatch:
        summary = f"Sample ratio mismatch: do not trust it. {summary}"
    return Chart(
        kind="intervals",
        title=f"Difference in {result.metric.replace('_', ' ')}",
        x=Axis(title="Arm"),
        y=Axis(title=f"Against {result.control}", unit="share" if is_share else "number"),
        reference=0.0,
        series=(Series("", points),) if points else (),
        uncertain="Some people's time is not over, or people did not come in the shares meant.",
        summary=summary if compared else "There are no two arms to compare.",
    )


@operation(
    "GET /v1/analytics/experiment",
    ANALYTICS_GROUP,
    is_long=always,
    example=ExperimentParams(assignment="experiment_viewed", arm="variation_name", window="7d"),
    choices=(Choice(("broadcast", "journey", "assignment"), required=True),),
    needs=(("step", "journey"),),
    picture=experiment_picture,
)
def experiment(context: Context, params: ExperimentParams) -> Experiment:
    """Compare the variants of a broadcast, a journey or your own experiment, at any time while it runs."""
    assignment, metric = assignment_of(context, params), step_of(params.metric, "metric")
    table, about = asked(
        context,
        _SQL,
        {
            "arm": Sql(assignment.arm),
            "since": Sql(assignment.since),
            "assignment": Sql(assignment.sql),
            "span": Sql(span_sql(params, "min(occurred_at)")),
            "metric": Sql(metric.sql),
            "worth": worth_sql(params.value),
            "outcome": Sql("value" if params.value else "sign(wins)"),
            "window": parse_duration(params.window),
            "now": context.now,
        },
        f"The intervals hold at all looks together with {params.confidence}%, as far as means are normal",
    )
    # An arm of which all were in others as well has nobody.
    arms = {row[0]: _Arm(*row) for row in table.rows if row[1]}
    crossed = sum(row[2] for row in table.rows)
    control = _control(params.control, arms)
    expected = _expected(params, assignment, arms)
    ratio_of = {name: arms[name].people if name in arms else 0 for name in expected}
    p = ratio_p(list(ratio_of.values()), list(expected.values()))
    ratio = SampleRatio(expected=expected, p=p, mismatch=p < MISMATCH_BELOW)
    ordered = sorted(arms.values(), key=lambda arm: (arm.arm != control, arm.arm))
    rows = [_row(arm, arms[control], params) for arm in ordered]
    return Experiment(
        rows=rows,
        control=control,
        metric=metric.name,
        crossed=crossed,
        ratio=ratio,
        value=params.value,
        notes=(*_notes(rows, ratio, crossed, params), *unread_notes(context, params.value, metric.sql)),
        **about,
    )


def _control(asked_for: str, arms: Mapping[str, _Arm]) -> str:
    if asked_for and arms and asked_for not in arms:
        raise InvalidValue(f"control: nobody is in the arm {asked_for!r}; there are {', '.join(arms)}", param="control")
    return asked_for or (HOLDOUT if HOLDOUT in arms else next(iter(arms), ""))


def _expected(params: ExperimentParams, assignment: Assignment, arms: Mapping[str, _Arm]) -> dict[str, float]:
    """The shares meant. An arm of them that nobody is in counts as well."""
    given: dict[str, float] = {}
    for text in params.weights:
        name, _, weight = text.rpartition("=")
        try:
            given[name] = float(weight)
        except ValueError:
            given[name] = 0.0
        if not name or not 0 < given[name] < float("inf"):
            raise InvalidValue(f"weights: {text!r} is no share such as `a=1`", param="weights")
    if given and (other := set(arms) - set(given)):
        raise InvalidValue(f"weights: there is none for the arm {min(other)!r}", param="weights")
    declared = assignment.weights if set(arms) <= set(assignment.weights) else {}
    return shares(given or declared or dict.fromkeys(arms, 1.0))


def _row(arm: _Arm, control: _Arm, params: ExperimentParams) -> ExperimentRow:
    row = ExperimentRow(
        arm=arm.arm, people=arm.people, undecided=arm.undecided, conversions=arm.conversions, mean=arm.mean
    )
    compared = (
        None if arm is control else difference(arm.sample, control.sample, params.confidence / 100, params.planned)
    )
    if compared is not None:
        row.difference, row.low, row.high, row.p = compared
        row.lift = compared.estimate / control.mean if control.mean else None
    return row


def _notes(rows: list[ExperimentRow], ratio: SampleRatio, crossed: int, params: ExperimentParams) -> list[str]:
    notes = []
    if ratio.mismatch:
        notes.append(
            f"Sample ratio mismatch (p = {ratio.p:.2g}): people did not come to the arms in the shares meant. "
            "Find out why before you believe a difference."
        )
    if undecided := sum(row.undecided for row in rows):
        window = duration_text(parse_duration(params.window))
        notes.append(f"Not in the figures yet: {counted(undecided, 'person')} assigned less than {window} ago.")
    if crossed:
        notes.append(f"Left out: {counted(crossed, 'person')} in several arms.")
    few = [row.arm for row in rows if min(row.conversions, row.people - row.undecided - row.conversions) < FEW]
    if few:
        notes.append(f"Fewer than {FEW} people with or without the event: intervals are rough ({', '.join(few)}).")
    return notes
