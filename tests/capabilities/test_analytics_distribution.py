"""Distributions against the features that are served: bins, quantiles and drift of values read person by person."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import threadline
from threadline.capabilities.ask.analytics.drift import drift_of
from threadline.capabilities.ask.analytics.operations.distribution import distribution_picture
from threadline.kernel.errors import NotFound
from threadline.kernel.time import DAY, format_time, parse_time

pytest.importorskip("duckdb")
START = parse_time("2026-01-01T00:00:00Z")
DEFINITIONS = """
features:
  last_plan: {aggregate: last, events: purchase_completed, of: plan}
segments:
  spenders: {when: {field: features.monetary_total, greater_than: 300}}
  others: {when: {field: features.monetary_total, less_than_or_equal: 300}}
"""
Values = dict[str, Any]


@pytest.fixture
def shop(tmp_path: Path, seed: int) -> Iterator[threadline.Threadline]:
    (tmp_path / "threadline.yaml").write_text(DEFINITIONS)
    random = Random(seed)
    with threadline.open("memory:", definitions=tmp_path, clock=lambda: START + 100 * DAY) as made:
        events = [
            {
                "type": random.choice(["purchase_completed", "page"]),
                "identifiers": {"user_id": f"u{number % 60}"},
                "key": str(number),
                "occurred_at": format_time(START + random.randrange(40 * DAY)),
                "properties": {
                    "total": random.randrange(1, 20_000) / 100,
                    "currency": "EUR",
                    "plan": random.choice(["free", "pro", "team", "old"]),
                },
            }
            for number in range(400)
        ]
        made.record(events)
        yield made


def served(shop: threadline.Threadline, feature: str, stop: int) -> Values:
    """Person -> value at the end of the last day, before an instant, on which they had an event."""
    found: Values = {}
    for person in shop.engine.reader.all_people("default"):
        days = [each.occurred_at for each in shop.events.of(person.id, limit=1_000).events]
        own = [parse_time(at) // DAY for at in days if (parse_time(at) // DAY + 1) * DAY <= stop]
        if own:
            midnight = format_time((max(own) + 1) * DAY)
            found[person.id] = shop.features.of(person.id, as_of=midnight, known="now").features[feature].value
    return found


def test_bins_and_quantiles_are_of_the_values_that_are_served(shop: threadline.Threadline) -> None:
    values = served(shop, "monetary_total", START + 100 * DAY)
    answer = shop.analytics.distribution(feature="monetary_total")
    numbers = sorted(float(each) for each in values.values() if each is not None)
    side = answer.sides[0]
    assert (side.people, side.missing) == (len(values), len(values) - len(numbers))
    assert (side.least, side.most) == (numbers[0], numbers[-1])
    assert side.mean == pytest.approx(sum(numbers) / len(numbers))
    for share, quantile in ((0.05, side.p05), (0.25, side.p25), (0.5, side.p50), (0.75, side.p75), (0.95, side.p95)):
        at = share * (len(numbers) - 1)
        below, above = numbers[math.floor(at)], numbers[math.ceil(at)]
        assert quantile == pytest.approx(below + (above - below) * (at - math.floor(at)))
    assert sum(row.people for row in answer.rows) == len(numbers)
    assert len(answer.rows) > 5
    for row in answer.rows:
        assert row.low is not None
        assert row.high is not None
        assert row.people == sum(row.low <= each < row.high for each in numbers)
    chart = distribution_picture(answer)
    assert (chart.kind, [point.y for point in chart.series[0].points]) == (
        "histogram",
        [row.people for row in answer.rows],
    )


def test_drift_from_an_earlier_instant_is_the_index_over_tenths_of_that_instant(shop: threadline.Threadline) -> None:
    stop = START + 15 * DAY
    before, now = served(shop, "monetary_total", stop), served(shop, "monetary_total", START + 100 * DAY)
    answer = shop.analytics.distribution(feature="monetary_total", baseline_stop=format_time(stop))
    numbers = sorted(float(each) for each in before.values() if each is not None)
    cuts = sorted({numbers[max(math.ceil(tenth * len(numbers) / 10), 1) - 1] for tenth in range(1, 10)})

    def counted(values: Values) -> Counter[int]:
        return Counter(-1 if each is None else bisect_left(cuts, float(each)) for each in values.values())

    new, old = counted(now), counted(before)
    bins = set(new) | set(old)
    index = 0.0
    for each in bins:
        share = (new[each] + 0.5) / (sum(new.values()) + len(bins) / 2)
        was = (old[each] + 0.5) / (sum(old.values()) + len(bins) / 2)
        index += (share - was) * math.log(share / was)
    assert answer.drift is not None
    assert (answer.drift.bins, answer.drift.index) == (len(bins), pytest.approx(index))
    assert [side.people for side in answer.sides] == [len(now), len(before)]
    assert sum(row.baseline or 0 for row in answer.rows) == len(numbers)
    assert [each.name for each in distribution_picture(answer).series] == ["compared", "baseline"]


def test_a_text_has_a_bar_for_each_frequent_value_and_one_for_all_others(shop: threadline.Threadline) -> None:
    values = Counter(each for each in served(shop, "last_plan", START + 100 * DAY).values() if each is not None)
    answer = shop.analytics.distribution(feature="last_plan", most=2)
    ranked = sorted(values, key=lambda each: (-values[each], each))
    expected = {each: values[each] for each in ranked[:2]} | {"(other)": sum(values[each] for each in ranked[2:])}
    assert {row.value: row.people for row in answer.rows} == expected
    assert answer.rows[-1].value == "(other)"
    assert (answer.sides[0].p50, distribution_picture(answer).kind) == (None, "bars")


def test_segments_are_compared_by_their_members(shop: threadline.Threadline) -> None:
    answer = shop.analytics.distribution(feature="monetary_total", segment="spenders", baseline_segment="others")
    members = [shop.segments.members(each, limit=1_000).members for each in ("spenders", "others")]
    assert [side.people for side in answer.sides] == [len(each) for each in members]
    compared, baseline = answer.sides
    assert compared.least is not None
    assert compared.least > 300
    assert baseline.most is not None
    assert baseline.most <= 300
    assert answer.drift is not None
    assert answer.drift.verdict == "large"


def test_a_baseline_of_nobody_has_no_drift_and_still_a_picture(shop: threadline.Threadline) -> None:
    # Who belongs was found when the events were recorded, a hundred days after the beginning.
    answer = shop.analytics.distribution(
        feature="monetary_total", baseline_segment="others", baseline_stop="2026-03-01"
    )
    assert (answer.drift, [side.side for side in answer.sides]) == (None, ["compared"])
    assert all(point.y == 0 for point in distribution_picture(answer).series[1].points)


@pytest.mark.parametrize(
    "values", [[0.29, 0.28, 0.0, 0.57], [-5, -4.999, 7], [1e11, -1e10], [99_999_999_999], [3], [0.1] * 9]
)
def test_each_value_lies_within_the_edges_of_its_bin(values: list[float]) -> None:
    with threadline.open("memory:") as shop:
        for number, value in enumerate(values):
            shop.record(
                [
                    {
                        "type": "sentiment_detected",
                        "identifiers": {"user_id": f"u{number}"},
                        "key": str(number),
                        "occurred_at": "2026-01-01",
                        "properties": {"score": value},
                    }
                ]
            )
        answer = shop.analytics.distribution(feature="sentiment_avg_30d")
        edges = [(row.low, row.high) for row in answer.rows]
        assert sum(row.people for row in answer.rows) == len(values)
        for row, (low, high) in zip(answer.rows, edges, strict=True):
            assert low is not None
            assert high is not None
            assert row.people == sum(low <= value < high for value in values)


def test_the_index_is_that_of_the_formula() -> None:
    # Shares (40.5, 60.5) / 101 against (50.5, 50.5) / 101: -10/101 * ln(40.5/50.5) + 10/101 * ln(60.5/50.5).
    drift = drift_of([(40, 50), (60, 50)])
    assert drift is not None
    assert drift.index == pytest.approx(10 / 101 * (math.log(50.5 / 40.5) + math.log(60.5 / 50.5)))
    # Chi-square with one degree of freedom is below 3.841459 in 95 of 100 cases.
    assert drift.chance == pytest.approx(3.841459 * (1 / 100 + 1 / 100), rel=1e-6)
    assert drift.verdict == "within chance"
    assert drift_of([(10, 0), (5, 0)]) is None
    large = drift_of([(900, 100), (100, 900)])
    assert large is not None
    assert large.verdict == "large"


def test_without_drift_the_index_is_seldom_above_what_chance_makes(seed: int) -> None:
    random, above, rounds = Random(seed), 0, 400
    for _ in range(rounds):
        one, other = (Counter(random.randrange(10) for _ in range(size)) for size in (500, 800))
        drift = drift_of([(one[each], other[each]) for each in range(10)])
        above += drift is not None and drift.index > drift.chance
    # Five of a hundred are expected: 20 of 400, within four standard deviations.
    assert 3 <= above <= 38


def test_a_feature_that_is_not_declared_is_refused() -> None:
    with threadline.open("memory:") as shop, pytest.raises(NotFound):
        shop.analytics.distribution(feature="no_such")


def test_a_break_down_by_a_feature_that_has_no_value_any_more_is_not_by_its_last_value() -> None:
    with threadline.open("memory:") as shop:
        shop.record(
            [
                {
                    "type": type,
                    "identifiers": {"user_id": "ada"},
                    "key": type,
                    "occurred_at": at,
                    "properties": {"score": 0.5},
                }
                for type, at in (("sentiment_detected", "2026-01-01"), ("page", "2026-03-01"))
            ]
        )
        trend = shop.analytics.trend(event="page", by="features.sentiment_avg_30d")
        assert [(row.period, row.value) for row in trend.rows] == [("2026-03-01", "")]
