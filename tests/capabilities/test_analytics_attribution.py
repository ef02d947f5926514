"""Attribution against a reckoner that walks every person's touches, and removes channels by walking the chain."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from random import Random

import msgspec
import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.operations.attribution import (
    MODELS,
    Attribution,
    AttributionParams,
    attribution,
)
from threadline.engine.context import Context
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, format_time, parse_time
from threadline.settings import Settings

START = parse_time("2026-01-01T00:00:00Z")
NOW = START + 100 * DAY
Lived = list[tuple[str, int, str, str, int]]
"""(person, instant, type, channel, value), in the order in which they are recorded."""


def lived(seed: int) -> Lived:
    """Many of one instant; conversions that are touches themselves; types that are neither."""
    random = Random(seed)
    return [
        (
            f"p{random.randrange(15)}",
            START + random.randrange(80) * 6 * HOUR,
            random.choice(["came", "came", "came", "bought", "other"]),
            random.choice(["", "ads", "mail", "search", "o'neill"]),
            random.randrange(1, 50),
        )
        for _ in range(150)
    ]


def asked(events: Lived, **params: object) -> Attribution:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    try:
        engine.recorder.record(
            [
                Event(
                    type=t,
                    identifiers=(Identifier("user_id", who),),
                    occurred_at=at,
                    key=str(n),
                    source="shop",
                    properties={"total": value} | ({"via": channel} if channel else {}),
                )
                for n, (who, at, t, channel, value) in enumerate(events)
            ]
        )
        stated = AttributionParams(event="bought", channel="via", half_life="3d", **params)  # type: ignore[arg-type]
        result: Attribution = attribution.run(Context(engine, "default", NOW), stated)
        return result
    finally:
        engine.close()


def ways(events: Lived, window: int, start: int, stop: int) -> list[tuple[list[tuple[str, int]], int]]:
    """(touches, value) of each conversion with touches in the range, and of each person what no conversion followed."""
    found: list[tuple[list[tuple[str, int]], int]] = []
    for person in sorted({each[0] for each in events}):
        own = sorted((at, n, t, via, value) for n, (who, at, t, via, value) in enumerate(events) if who == person)
        used = set()
        for at, n, t, _, value in own:
            if t == "bought":
                before = [e for e in own if e[3] and e[:2] <= (at, n) and e[0] >= at - window]
                used |= {e[1] for e in before}
                if before and start <= at < stop:
                    found.append(([(e[3], e[0]) for e in before], value))
        lost = [(e[3], e[0]) for e in own if e[3] and e[1] not in used and start <= e[0] < stop]
        if lost:
            found.append((lost, 0))
    return found


def credits_of(touches: list[tuple[str, int]]) -> dict[str, Counter[str]]:
    """Each model's shares of one conversion."""
    n = len(touches)
    shares: dict[str, list[float]] = {"linear": [1 / n] * n}
    shares["first"] = [1.0] + [0.0] * (n - 1)
    shares["last"] = [0.0] * (n - 1) + [1.0]
    shares["position"] = {1: [1.0], 2: [0.5, 0.5]}.get(n) or [0.4, *[0.2 / (n - 2)] * (n - 2), 0.4]
    ages = [0.5 ** ((touches[-1][1] - at) / (3 * DAY)) for _, at in touches]
    shares["decay"] = [age / sum(ages) for age in ages]
    result: dict[str, Counter[str]] = defaultdict(Counter)
    for model, each in shares.items():
        for (channel, _), share in zip(touches, each, strict=True):
            result[model][channel] += share  # type: ignore[assignment]
    return result


MASS_MIN = 1e-14
"""Of the walks that have not ended: a share that no comparison sees."""


def converted(walks: list[tuple[list[str], bool]], without: str = "") -> float:
    """The share of walks through the chain that end with a conversion, by pushing its whole mass along."""
    moves: dict[str, Counter[str]] = defaultdict(Counter)
    for channels, is_won in walks:
        way = ["(start)", *channels, "(won)" if is_won else "(lost)"]
        for source, target in pairwise(way):
            moves[source][target] += 1
    chances = {
        source: [(target, times / sum(targets.values())) for target, times in targets.items()]
        for source, targets in moves.items()
    }
    mass, won = {"(start)": 1.0}, 0.0
    while sum(mass.values()) > MASS_MIN:
        following: dict[str, float] = defaultdict(float)
        for state, share in mass.items():
            for target, chance in chances[state]:
                if target == "(won)":
                    won += share * chance
                elif target not in ("(lost)", without):
                    following[target] += share * chance
        mass = following
    return won


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("days", "value", "span"), [(2, "", False), (9, "total", False), (9, "total", True)])
def test_credits_are_those_of_walking_every_way(seed: int, days: int, value: str, span: bool) -> None:
    events = lived(seed)
    start, stop = (START + 6 * DAY, START + 15 * DAY) if span else (START, NOW)
    range_ = {"start": format_time(start), "stop": format_time(stop)} if span else {}
    result = asked(events, window=f"{days}d", value=value, **range_)
    found = ways(events, days * DAY, start, stop)
    won = [(touches, worth if value else 1) for touches, worth in found if worth]
    expected: dict[str, Counter[str]] = defaultdict(Counter)
    for touches, worth in won:
        for model, shares in credits_of(touches).items():
            for channel, share in shares.items():
                expected[model][channel] += share * worth
    walks = [([channel for channel, _ in touches], bool(worth)) for touches, worth in found]
    whole = converted(walks)
    everywhere = {channel for channels, _ in walks for channel in channels}
    assert {row.channel for row in result.rows} == everywhere
    removal = {channel: 1 - converted(walks, channel) / whole for channel in everywhere}
    credited = sum(worth for _, worth in won)
    assert result.with_touches == len(won) > 0
    assert result.credited == pytest.approx(credited)
    for row in result.rows:
        for model in MODELS[:-1]:
            assert getattr(row, model) == pytest.approx(expected[model][row.channel]), model
        assert row.removal == pytest.approx(removal[row.channel])
        assert row.markov == pytest.approx(credited * removal[row.channel] / sum(removal.values()))
    for model in MODELS:
        assert sum(getattr(row, model) for row in result.rows) == pytest.approx(credited)


def test_the_same_question_has_the_same_answer_bit_for_bit() -> None:
    random = Random(1)
    engine = open_engine("memory:", Settings(), lambda: NOW)
    engine.recorder.record(
        [
            Event(
                type=random.choice(["came", "came", "bought"]),
                identifiers=(Identifier("user_id", f"p{number % 60}"),),
                occurred_at=START + random.randrange(90) * DAY,
                key=str(number),
                source="shop",
                properties={"total": random.random(), "via": random.choice(["ads", "mail", "search"])},
            )
            for number in range(1_000)
        ]
    )
    params = AttributionParams(event="bought", channel="via", value="total")
    context = Context(engine, "default", NOW)
    first: Attribution = attribution.run(context, params)
    assert all(attribution.run(context, params) == first for _ in range(10))
    engine.close()


def test_channels_beyond_the_most_frequent_are_one_row_and_no_credit_is_lost() -> None:
    whole, few = asked(lived(1)), asked(lived(1), most=1)
    assert [row.channel for row in few.rows if row.channel == "(other)"] == ["(other)"]
    assert len(few.rows) == 2
    assert sum(row.decay for row in few.rows) == pytest.approx(whole.credited)


def test_a_channel_that_only_lost_ways_have_is_credited_for_where_it_leads() -> None:
    events: Lived = [
        ("ada", START, "came", "mail", 1),
        ("ada", START + 1, "bought", "", 5),
        ("bob", START, "came", "ads", 1),
        ("bob", START + 1, "came", "mail", 1),
    ]
    rows = {row.channel: row for row in asked(events).rows}
    # Half of all ways begin with ads and come to mail, of which half convert: a half of the conversions goes with ads.
    assert (rows["ads"].touches, rows["ads"].linear) == (0, 0)
    assert rows["ads"].removal == pytest.approx(0.5)
    assert rows["mail"].removal == pytest.approx(1)
    assert rows["ads"].markov == pytest.approx(1 / 3)
    assert rows["mail"].markov == pytest.approx(2 / 3)


def test_values_that_are_no_finite_numbers_count_as_0() -> None:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    for number, total in enumerate(["inf", "nan", "1e400", "-inf", "free", None, 7]):
        engine.recorder.record(
            [
                Event(
                    type=type_,
                    identifiers=(Identifier("user_id", f"p{number}"),),
                    occurred_at=START + at,
                    key=f"{number}{type_}",
                    source="shop",
                    properties={"via": "ads", "total": total},
                )
                for at, type_ in enumerate(("came", "bought"))
            ]
        )
    params = AttributionParams(event="bought", channel="via", value="total", touches="came")
    result: Attribution = attribution.run(Context(engine, "default", NOW), params)
    engine.close()
    assert (result.total, result.rows[0].first, result.rows[0].markov) == (7, 7, 7)


def test_without_any_conversion_no_channel_has_credit() -> None:
    result = asked([("ada", START, "came", "ads", 1)])
    assert [(row.channel, row.touches, row.markov, row.removal) for row in result.rows] == [("ads", 0, 0, 0)]
    assert (asked([]).rows, result.conversions, result.credited) == ([], 0, 0)


def test_a_half_life_far_shorter_than_the_way_gives_all_to_the_last_touch() -> None:
    events: Lived = [("a", START, "came", "ads", 1), ("a", START + 29 * DAY, "came", "mail", 1)]
    result = asked([*events, ("a", START + 29 * DAY + 1, "bought", "", 5)])
    assert {row.channel: round(row.decay, 2) for row in result.rows} == {"mail": 1.0, "ads": 0.0}


@pytest.mark.parametrize(("param", "text"), [("value", "features.x"), ("channel", "a..b"), ("touches", "{}}")])
def test_a_parameter_that_cannot_be_is_refused_by_its_name(param: str, text: str) -> None:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    params = msgspec.structs.replace(AttributionParams(), **{param: text})
    with pytest.raises(InvalidValue) as caught:
        attribution.run(Context(engine, "default", NOW), params)
    assert caught.value.param == param
    engine.close()
