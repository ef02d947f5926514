"""What people will buy: the models have the parameters published for CDNOW; histories are those of the log."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from decimal import Decimal, localcontext
from typing import Any

import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.lifetime import (
    Purchases,
    average_value,
    fit_purchases,
    fit_spending,
    forecast,
)
from threadline.capabilities.ask.analytics.operations.lifetime import LifetimeParams, lifetime, lifetime_picture
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, parse_time
from threadline.settings import Settings
from threadline.surfaces.cli.demo.history import orders

pytest.importorskip("scipy")
END = date(1997, 9, 30)
"""Of the weeks to which the published models were fitted."""


def histories(most: int = 10_000) -> dict[str, tuple[int, float, float, float]]:
    """By customer: repeat days, weeks to the last and to the end, and what a repeat day was worth."""
    days: dict[str, dict[date, float]] = defaultdict(lambda: defaultdict(float))
    for order in orders():
        if order.day <= END:
            days[order.customer][order.day] += order.dollars
    found = {}
    for customer, values in list(days.items())[:most]:
        first, repeats = min(values), len(values) - 1
        later = sum(value for day, value in values.items() if day > first)
        weeks = (max(values) - first).days / 7, (END - first).days / 7
        found[customer] = repeats, *weeks, later / repeats if repeats else 0.0
    return found


def test_models_of_cdnow_have_the_published_parameters() -> None:
    x, t_x, t, m = zip(*histories().values(), strict=True)
    model = fit_purchases(x, t_x, t)
    # Fader, Hardie and Lee: "Counting your customers" the easy way, 2005, table 1 and page 279 (its customer 1516).
    assert model == pytest.approx((0.243, 4.414, 0.793, 2.426), abs=0.001)
    assert forecast(model, [2], [30.43], [38.86], 39).expected == pytest.approx(1.226, abs=0.001)
    # Fader and Hardie: The Gamma-Gamma model of monetary value, 2013: p, q and gamma, to two digits.
    spending = fit_spending(x, m)
    assert spending == pytest.approx((6.25, 3.74, 15.44), abs=0.01)
    # Somebody who came back never is expected to spend what everybody does.
    p, q, v = spending
    assert average_value(spending, [0], [0]) == pytest.approx(p * v / (q - 1))


def by_decimals(model: Purchases, x: int, t_x: float, t: float, ahead: float) -> tuple[float, float]:
    """Alive and expected as the paper has them, equations 9 and 10, with 200 digits: no power is too small there."""
    with localcontext() as digits:
        digits.prec, digits.Emax, digits.Emin = 200, 10**9, -(10**9)
        r, alpha, a, b, last, now, weeks = map(Decimal, (*model, t_x, t, ahead))
        power = ((alpha + now) / (alpha + now + weeks)) ** (r + x)
        z, term, total, n = weeks / (alpha + now + weeks), Decimal(1), Decimal(1), 0
        while n < 20 or abs(term) > abs(total) * Decimal(10) ** -60:
            term *= (r + x + n) * (b + x + n) / (a + b + x - 1 + n) / (n + 1) * z
            total, n = total + term, n + 1
        odds = a / (b + x - 1) * ((alpha + now) / (alpha + last)) ** (r + x) if x else Decimal(0)
        expected = (a + b + x - 1) / (a - 1) * (1 - power * total) / (1 + odds)
        return float(1 / (1 + odds)), float(expected)


@pytest.mark.parametrize(
    "model",
    [
        (0.243, 4.414, 0.793, 2.426),
        (3.1, 0.7, 1.6, 40.0),
        (0.9, 12.0, 0.04, 0.3),
        (0.9, 12.0, 0.999999, 3.0),
        (2.0, 3.0, 50.0, 900.0),
        (5_000.0, 9_000.0, 5_000.0, 90_000.0),
    ],
)
@pytest.mark.parametrize("weeks", [1, 52, 260, 520])
def test_forecast_of_every_frequency_and_time_is_that_of_200_digits(model: tuple[float, ...], weeks: int) -> None:
    people = [
        (0, 0.0, 40.0),
        (0, 0.0, 600.0),
        (1, 10.0, 12.0),
        (3, 2.0, 300.0),
        (40, 39.0, 40.0),
        (150, 20.0, 400.0),
        (299, 42.7, 43.0),
        (449, 64.1, 64.3),
        (599, 85.6, 86.0),
        (1_500, 214.0, 215.0),
        (3_650, 521.0, 521.0),
    ]
    found = forecast(Purchases(*model), *zip(*people, strict=True), weeks)
    wanted = [by_decimals(Purchases(*model), *each, weeks) for each in people]
    assert list(zip(found.alive, found.expected, strict=True)) == [pytest.approx(each, rel=1e-8) for each in wanted]


def recorded(most: int) -> Engine:
    engine = open_engine("memory:", Settings(), lambda: parse_time("1998-07-01T00:00:00Z"))
    shown = set(histories(most))
    engine.recorder.record(
        [
            Event(
                type="purchase_completed",
                identifiers=(Identifier("user_id", order.customer),),
                properties={"total": order.dollars},
                occurred_at=parse_time(f"{order.day}T00:00:00Z"),
                key=str(order.number),
                source="shop",
            )
            for order in orders()
            if order.customer in shown
        ]
    )
    return engine


def asked(engine: Engine, **params: Any) -> Any:
    stop = "1997-10-01T00:00:00Z"
    return lifetime.run(Context(engine, "default", engine.clock() + DAY), LifetimeParams(stop=stop, **params))


def test_an_answer_has_the_history_of_each_person_and_the_models_of_everybody() -> None:
    pytest.importorskip("duckdb")
    engine, expected = recorded(150), histories(150)
    try:
        result = asked(engine, weeks=39, most=1_000)
        x, t_x, t, m = zip(*expected.values(), strict=True)
        model, spending = fit_purchases(x, t_x, t), fit_spending(x, m)
        ahead = forecast(model, x, t_x, t, 39)
        worth = ahead.expected * average_value(spending, x, m)
        found = [(row.repeats, row.recency, row.age, row.alive, row.purchases, row.value) for row in result.rows]
        wanted = zip(x, t_x, t, ahead.alive, ahead.expected, worth, strict=True)
        # Parameters agree to one in 100,000, and so does what follows from them.
        assert sorted(found) == [pytest.approx(each, rel=1e-3) for each in sorted(wanted)]
        assert result.people == len(expected) == sum(each.people for each in result.alive)
        assert set(result.model) == {"r", "alpha", "a", "b", "p", "q", "v"}
        assert [row.value for row in result.rows] == sorted((row.value for row in result.rows), reverse=True)
        assert sum(point.y or 0 for point in lifetime_picture(result).series[0].points) == len(expected)
    finally:
        engine.close()


def test_where_no_event_has_the_value_how_often_is_forecast_and_a_note_says_so() -> None:
    pytest.importorskip("duckdb")
    engine = recorded(150)
    try:
        result = asked(engine, value="worth")
        assert result.purchases > 0 == result.value
        assert "`worth`" in result.notes[-1]
        assert set(result.model) == {"r", "alpha", "a", "b"}
    finally:
        engine.close()


def test_too_few_people_who_came_back_are_refused() -> None:
    pytest.importorskip("duckdb")
    engine = recorded(3)
    try:
        with pytest.raises(InvalidValue, match="at least 10 people"):
            asked(engine)
    finally:
        engine.close()
