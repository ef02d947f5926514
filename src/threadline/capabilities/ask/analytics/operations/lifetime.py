"""What people will buy: probability that they still do, purchases to expect and what these are worth."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.libraries import numbers
from threadline.capabilities.ask.analytics.lifetime import (
    average_value,
    fit_purchases,
    fit_spending,
    forecast,
)
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
from threadline.kernel.errors import InvalidValue
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import PROPERTY, offers, refused_if
from threadline.kernel.operation import Context, always, operation
from threadline.kernel.time import to_datetime

BINS = 20

# One row of lists: a model is fitted to everybody, however many they are. What somebody buys on one day is one
# purchase, as in the papers. Sums have an order: otherwise their last digits would change from answer to answer.
_SQL = """
WITH days AS (
  SELECT person, day, sum($value ORDER BY position) AS value FROM events WHERE $chosen GROUP BY person, day
),
people AS (
  SELECT person, count(*) - 1 AS repeats, (max(day) - min(day)) / 7.0 AS recency, ($until - min(day)) / 7.0 AS age,
    CASE WHEN count(*) > 1 THEN (sum(value ORDER BY day) - arg_min(value, day)) / (count(*) - 1) ELSE 0 END AS value
  FROM days GROUP BY person
)
SELECT list(person ORDER BY person), list(repeats ORDER BY person), list(recency::DOUBLE ORDER BY person),
  list(age::DOUBLE ORDER BY person), list(coalesce(value, 0)::DOUBLE ORDER BY person)
FROM people
"""


class LifetimeParams(Span, kw_only=True):
    """What a purchase is, and how far to look ahead."""

    event: Annotated[TypeName, Meta(description="The event that is a purchase.", min_length=1)] = "purchase_completed"
    where: Where = ""
    value: Annotated[
        str,
        refused_if(lacking_property),
        offers(PROPERTY),
        Meta(description="The property with its value; empty: only how often.", max_length=200),
    ] = "total"
    weeks: Annotated[int, Meta(description="How far to look ahead.", ge=1, le=520)] = 52
    most: Annotated[int, Meta(description="Rows: the people with the most expected purchases.", ge=1, le=1_000)] = 100


@key_fields("value", "alive", "purchases", "average", "person")
class LifetimeRow(msgspec.Struct, kw_only=True):
    """A person."""

    person: str
    repeats: Annotated[int, Meta(description="Days with a purchase after the first.")]
    recency: Annotated[float, Meta(description="Weeks from the first purchase to the last.")]
    age: Annotated[float, Meta(description="Weeks from the first purchase to the end of the time.")]
    alive: Annotated[float, Meta(description="The probability that they still buy.")]
    purchases: Annotated[float, Meta(description="To be expected within the weeks ahead.")]
    average: Annotated[float, Meta(description="What one is to be worth; 0 without `value`.")]
    value: Annotated[float, Meta(description="Of all that are to be expected; 0 without a `value`.")]


class Alive(msgspec.Struct, kw_only=True):
    """How many people have a probability from ``low`` on."""

    low: float
    people: int


@not_personal
class Lifetime(Answered, kw_only=True):
    """The people with the most expected purchases, and the parameters of the models."""

    rows: list[LifetimeRow]
    people: Annotated[int, Meta(description="Everybody with a purchase; the models are of all of them.")]
    purchases: Annotated[float, Meta(description="To be expected of all of them.")]
    value: Annotated[float, Meta(description="Of all these; 0 without `value`.")] = 0.0
    model: Annotated[dict[str, float], Meta(description="r, alpha, a, b of BG/NBD; p, q, v of Gamma-Gamma.")]
    alive: Annotated[list[Alive], Meta(description="Of all of them, in steps of a twentieth.")] = msgspec.field(
        default_factory=list
    )


def lifetime_picture(result: Lifetime) -> Chart:
    """How many people are how likely to buy again."""
    points = tuple(Point(part.low, part.people, high=part.low + 1 / BINS) for part in result.alive)
    return Chart(
        kind="histogram",
        title="How likely people are to still buy",
        x=Axis(title="Probability", unit="share"),
        y=Axis(title="People", unit="count"),
        series=(Series("", points),),
        summary=f"Expected: {counted(round(result.purchases), 'purchase')} by {counted(result.people, 'person')}.",
    )


@operation(
    "GET /v1/analytics/lifetime",
    ANALYTICS_GROUP,
    is_long=always,
    example=LifetimeParams(event="purchase_completed", value="total", weeks=26),
    picture=lifetime_picture,
)
def lifetime(context: Context, params: LifetimeParams) -> Lifetime:
    """Predict who will buy again, how often and for how much."""
    np, stop = numbers("numpy"), time_param(params.stop)
    until = min(context.now if stop is None else stop, context.now)
    chosen = all_of(type_sql(params.event), where_sql(params.where), span_sql(params))
    # The end of the time is not in it: its last day is the one before.
    last = to_datetime(until - 1).date()
    bound = "The data are exact; each parameter is of the maximum of likelihood, to about one in 100,000"
    asked_for = {"value": worth_sql(params.value), "chosen": Sql(chosen), "until": last}
    table, about = asked(context, _SQL, asked_for, bound)
    lists = [column or [] for column in table.rows[0]]
    people, (x, t_x, t, m) = lists[0], (np.array(column, float) for column in lists[1:])
    model = fit_purchases(x, t_x, t)
    parameters, ahead = model._asdict(), forecast(model, x, t_x, t, params.weeks)
    notes = ["Who bought once counts as alive: in this model people leave after a repeat purchase only."]
    average: Any = np.zeros(len(people))
    if params.value:
        try:
            spending = fit_spending(x, m)
        except InvalidValue as error:
            notes.append(f"Values are 0: {error}, in `{params.value}`; give the property as `value`.")
        else:
            parameters |= spending._asdict()
            average = average_value(spending, x, m)
    value = ahead.expected * average
    order = np.argsort(-(value if average.any() else ahead.expected), kind="stable")[: params.most]
    counts, _ = np.histogram(ahead.alive, BINS, (0, 1))
    rows = [
        LifetimeRow(
            person=people[at],
            repeats=int(x[at]),
            recency=float(t_x[at]),
            age=float(t[at]),
            alive=float(ahead.alive[at]),
            purchases=float(ahead.expected[at]),
            average=float(average[at]),
            value=float(value[at]),
        )
        for at in order
    ]
    return Lifetime(
        rows=rows,
        people=len(people),
        purchases=float(ahead.expected.sum()),
        value=float(value.sum()),
        model=parameters,
        alive=[Alive(low=at / BINS, people=int(count)) for at, count in enumerate(counts)],
        notes=(*notes, *unread_notes(context, params.value, chosen)),
        **about,
    )
