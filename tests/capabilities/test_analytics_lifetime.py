"""What people will buy: the models have the parameters published for CDNOW; histories are those of the log."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from typing import Any

import pytest

from threadline.app import open_engine
from threadline.capabilities.analytics.lifetime import average_value, fit_purchases, fit_spending, forecast
from threadline.capabilities.analytics.operations.lifetime import LIFETIME, LifetimeParams, lifetime_picture
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


def recorded(most: int) -> Engine:
    engine = open_engine("memory:", Settings(), lambda: parse_time("1998-07-01T00:00:00Z"))
    shown = set(histories(most))
    engine.recorder.record(
        [
            Event(
                type="purchase_completed", identifiers=(Identifier("user_id", order.customer),),
                properties={"total": order.dollars}, occurred_at=parse_time(f"{order.day}T00:00:00Z"),
                key=str(order.number), source="shop",
            )
            for order in orders() if order.customer in shown
        ]
    )  # fmt: skip
    return engine


def asked(engine: Engine, **params: Any) -> Any:
    stop = "1997-10-01T00:00:00Z"
    return LIFETIME.run(Context(engine, "default", engine.clock() + DAY), LifetimeParams(stop=stop, **params))


def test_an_answer_has_the_history_of_each_person_and_the_models_of_everybody() -> None:
    pytest.importorskip("duckdb")
    engine, expected = recorded(150), histories(150)
    try:
        result = asked(engine, value="total", weeks=39, most=1_000)
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


def test_too_few_people_who_came_back_are_refused() -> None:
    pytest.importorskip("duckdb")
    engine = recorded(3)
    try:
        with pytest.raises(InvalidValue, match="at least 10 people"):
            asked(engine)
    finally:
        engine.close()
