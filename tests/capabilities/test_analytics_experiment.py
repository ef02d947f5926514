"""Experiments against a reckoner that goes through people one by one; intervals that hold however often one looks."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from random import Random
from statistics import mean, variance
from typing import Any

import pytest

import threadline
from tests.capabilities.journeys_stage import Stage
from threadline.app import open_engine
from threadline.capabilities.ask.analytics.operations.experiment import experiment_picture
from threadline.capabilities.ask.analytics.sequential import Sample, difference, ratio_p
from threadline.capabilities.reach.journeys.declared import read_journeys
from threadline.capabilities.reach.journeys.steps import steps_of
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import DAY, HOUR, format_time, parse_time
from threadline.settings import Settings

np = pytest.importorskip("numpy")
pytest.importorskip("duckdb")
START = parse_time("2026-01-01T00:00:00Z")
NOW = START + 30 * DAY
WINDOW = 7 * DAY
JOURNEY = """
mail:
  senders: {shop: {from: shop@shop.example}}
  templates: {hello: {subject: Hi, text: Hi}, ahoy: {subject: A, text: A}}
journeys:
  welcome:
    trigger: {event: signed_up}
    holdout: 0.3
    steps:
      - {id: greet, send: {variants: [{template: hello, weight: 3}, {template: ahoy, weight: 1}]}}
"""
Lived = list[tuple[str, int, str, str, float]]
"""(person, instant, type, arm, value), in the order in which they are recorded."""


def lived(seed: int) -> Lived:
    """Some are assigned twice, some to two arms, some after they have bought; some lately."""
    random, events = Random(seed), []
    for number in range(240):
        at = START + random.randrange(28) * DAY
        arm = random.choice("abb")
        events.append((f"p{number}", at, "assigned", arm, 0.0))
        if random.random() < 0.1:
            events.append((f"p{number}", at + HOUR, "assigned", random.choice("ab"), 0.0))
        for _ in range(random.randrange(3)):
            moment = at + random.choice([-DAY, 0, HOUR, WINDOW - 1, WINDOW, 2 * DAY])
            events.append((f"p{number}", moment, "bought", "", float(random.randrange(1, 90))))
    return events


def recorded(events: Lived) -> threadline.Threadline:
    shop = threadline.open("memory:", clock=lambda: NOW)
    shop.record(
        [
            {
                "type": type,
                "identifiers": {"user_id": person},
                "key": str(number),
                "occurred_at": format_time(at),
                "properties": {"total": value} | ({"variant": arm} if arm else {}),
            }
            for number, (person, at, type, arm, value) in enumerate(events)
        ]
    )
    return shop


def outcomes(events: Lived) -> dict[str, dict[str, Any]]:
    """Of each arm: people, undecided, and the sums of what the others bought."""
    found: dict[str, dict[str, Any]] = {}
    for person in {each[0] for each in events}:
        own = [each for each in events if each[0] == person]
        arms = {arm for _, _, type, arm, _ in own if type == "assigned"}
        if len(arms) > 1:
            continue
        entered = min(at for _, at, type, _, _ in own if type == "assigned")
        arm = found.setdefault(arms.pop(), {"people": 0, "undecided": 0, "sums": []})
        arm["people"] += 1
        if entered + WINDOW > NOW:
            arm["undecided"] += 1
        else:
            arm["sums"].append(
                [v for _, at, type, _, v in own if type == "bought" and entered <= at < entered + WINDOW]
            )
    return found


@pytest.mark.parametrize("value", ["", "total"])
def test_arms_are_as_their_people_tell(seed: int, value: str) -> None:
    events = lived(seed)
    with recorded(events) as shop:
        answer = shop.analytics.experiment(
            assignment="assigned", arm="variant", metric="bought", value=value, window="7d", weights=["a=1", "b=2"]
        )
    expected = outcomes(events)
    assert [row.arm for row in answer.rows] == ["a", "b"]
    assert answer.crossed == len({each[0] for each in events}) - sum(arm["people"] for arm in expected.values()) > 0
    samples = {}
    for row in answer.rows:
        arm = expected[row.arm]
        values = [sum(each) if value else float(bool(each)) for each in arm["sums"]]
        assert (row.people, row.undecided) == (arm["people"], arm["undecided"])
        assert row.conversions == sum(bool(each) for each in arm["sums"])
        assert row.mean == pytest.approx(mean(values))
        samples[row.arm] = Sample(len(values), mean(values), variance(values))
    control, other = answer.rows
    found = difference(samples["b"], samples["a"], 0.95, 1_000)
    assert found is not None
    assert (control.difference, control.p) == (None, None)
    assert (other.difference, other.low, other.high, other.p) == tuple(map(pytest.approx, found))
    people = {name: arm["people"] for name, arm in expected.items()}
    total = sum(people.values())
    chi_square = sum(
        (people[each] - total * share) ** 2 / (total * share) for each, share in (("a", 1 / 3), ("b", 2 / 3))
    )
    # With one degree of freedom chi-square is the square of a normal.
    assert answer.ratio.p == pytest.approx(math.erfc(math.sqrt(chi_square / 2)))
    assert sum("in the figures yet" in note for note in answer.notes) == 1


def test_shares_far_from_those_meant_are_a_warning_in_answer_and_picture(seed: int) -> None:
    with recorded(lived(seed)) as shop:
        answer = shop.analytics.experiment(
            assignment="assigned", arm="variant", metric="bought", window="7d", weights=["a=9", "b=1"]
        )
    assert answer.ratio.mismatch
    assert answer.notes[0].startswith("Sample ratio mismatch")
    chart = experiment_picture(answer)
    assert chart.summary.startswith("Sample ratio mismatch")
    assert all(point.is_uncertain for point in chart.series[0].points)


def test_an_arm_that_is_meant_and_has_nobody_is_a_mismatch(seed: int) -> None:
    with recorded(lived(seed)) as shop:
        answer = shop.analytics.experiment(
            assignment="assigned", arm="variant", metric="bought", weights=["a=1", "b=2", "c=1"]
        )
    assert answer.ratio.mismatch
    assert answer.ratio.expected["c"] == 0.25


def test_who_looks_after_every_hundred_people_is_seldom_ever_wrong() -> None:
    """Two arms that are the same, looked at a hundred times: the interval of a single look is wrong in a third of all
    runs, this one in fewer than five of a hundred."""
    draws, runs, step, looks = np.random.default_rng(7), 400, 100, 100
    wrong = naive = 0
    for _ in range(runs):
        a, b = (draws.binomial(1, 0.2, step * looks // 2).cumsum() for _ in range(2))
        ever = fixed = False
        for look in range(1, looks + 1):
            n = look * step // 2
            rates = a[n - 1] / n, b[n - 1] / n
            one, other = (Sample(n, rate, rate * (1 - rate) * n / (n - 1)) for rate in rates)
            found = difference(one, other, 0.95, 10_000)
            if found is not None:
                ever |= found.low > 0 or found.high < 0
                assert (found.p < 0.05) == (found.low > 0 or found.high < 0)
                fixed |= abs(found.estimate) > 1.96 * math.sqrt(one.variance / n + other.variance / n)
        wrong, naive = wrong + ever, naive + fixed
    # Five of a hundred are allowed, with four standard deviations of 400 runs.
    assert wrong / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)
    assert naive / runs > 0.2


def test_the_interval_is_that_of_the_formula() -> None:
    # V = 0.16 / 400 + 0.25 / 600, n = 1000, rho2 = (2 ln 20 + ln(2 ln 20 + 1)) / 10000.
    rho2 = (2 * math.log(20) + math.log(2 * math.log(20) + 1)) / 10_000
    spread, grown = 0.16 / 400 + 0.25 / 600, 1_000 * rho2 + 1
    radius = math.sqrt(spread * 2 * grown / (1_000 * rho2) * math.log(math.sqrt(grown) / 0.05))
    found = difference(Sample(400, 0.3, 0.16), Sample(600, 0.2, 0.25), 0.95, 10_000)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(0.1 - radius), pytest.approx(0.1 + radius))
    # The table of docs/analytics.md.
    rates = (0.125, 0.1)
    worked = difference(*(Sample(5_000, rate, rate * (1 - rate) * 5_000 / 4_999) for rate in rates), 0.95, 1_000)
    assert worked is not None
    assert [round(each, 4) for each in worked] == [0.025, 0.0045, 0.0455, 0.0039]
    assert difference(Sample(1, 1, 0), Sample(600, 0.2, 0.25), 0.95, 10_000) is None
    assert difference(Sample(9, 1, 0), Sample(9, 1, 0), 0.95, 10_000) is None


def test_the_chance_of_shares_is_that_of_tables() -> None:
    # Chi-square 9.210 with two degrees of freedom has 0.01 above it.
    assert ratio_p([100, 100, 100], [1, 1, 1]) == 1
    assert ratio_p([50], [1]) == 1
    assert ratio_p([1_000, 1_090], [1, 1]) == pytest.approx(0.049, abs=0.001)


def test_a_journey_is_compared_with_its_holdout_and_its_variants(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text(JOURNEY)
    now = [START]
    with threadline.open("memory:", definitions=tmp_path, clock=lambda: now[0]) as shop:
        names = [f"u{number}" for number in range(300)]
        for start in range(0, 300, 100):
            shop.record(
                [
                    {"type": "signed_up", "identifiers": {"user_id": each}, "key": each}
                    for each in names[start : start + 100]
                ]
            )
        now[0] += DAY
        shop.record([{"type": "bought", "identifiers": {"user_id": each}, "key": f"b{each}"} for each in names[::3]])
        now[0] += 30 * DAY
        whole = shop.analytics.experiment(journey="welcome", metric="bought")
        parts = shop.analytics.experiment(journey="welcome", step="greet", metric="bought")
        held_out = {
            shop.person(each).id
            for each in names
            if shop.events.of(each, type="journey_entered").events[0].properties.get("holdout")
        }
        with pytest.raises(NotFound):
            shop.analytics.experiment(journey="no_such")
    assert [(row.arm, row.people) for row in whole.rows] == [
        ("holdout", len(held_out)),
        ("journey", 300 - len(held_out)),
    ]
    assert sum(row.conversions for row in whole.rows) == 100
    assert whole.ratio.expected == pytest.approx({"holdout": 0.3, "journey": 0.7})
    assert not whole.ratio.mismatch
    assert parts.ratio.expected == pytest.approx({"holdout": 0.3, "hello": 0.525, "ahoy": 0.175})
    assert sum(row.people for row in parts.rows) == 300
    assert not parts.ratio.mismatch


VARIED = """
journeys:
  varied:
    trigger: {event: signed_up}
    holdout: 0.25
    steps:
      - {id: first, send: {variants: [{template: a}, {template: b}]}}
      - wait: 1h
      - {id: middle, send: {variants: [{template: a, name: x}, {template: b, name: y}]}}
      - id: bought
        wait: {event: bought, timeout: 2h}
        then: [{id: thanks, send: {variants: [{template: a}, {template: b}]}}]
        else:
          - wait: 1h
          - {id: last, send: {variants: [{template: a}, {template: c, weight: 3}]}}
"""


def test_people_in_the_experiment_of_every_step_are_those_who_got_a_variant_or_were_held_out(
    seed: int, tmp_path: Path
) -> None:
    random, stage, file = Random(seed), Stage(VARIED), tmp_path / "threadline.yaml"
    file.write_text(VARIED)
    stage.engine = open_engine("memory:", Settings(), lambda: stage.now, file)
    people = [f"u{number}" for number in range(60)]
    for who in people:
        stage.tell("signed_up", user_id=who)
        stage.until(stage.now + random.randrange(HOUR))
        if random.random() < 0.4:
            stage.tell("bought", user_id=random.choice(people))
    stage.until(stage.now + random.randrange(6) * HOUR)
    got: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for _, person, data in stage.mails:
        got[data["step"]][data["arm"] or data["template"]].add(person)
    for who in people:
        for told in stage.told(who):
            for mail in told["mails"] if told.get("holdout") else ():
                got[mail["step"]]["holdout"].add(who)
    (journey,) = read_journeys(stage.engine.catalogue.definitions)
    varied = [step.id for step in steps_of(journey.steps) if step.send is not None and len(step.send.arms) > 1]
    assert set(varied) == set(got) == {"first", "middle", "thanks", "last"}
    for step, arms in got.items():
        rows = stage.ask("analytics_experiment", journey="varied", step=step, metric="bought")["rows"]
        assert {row["arm"]: row["people"] for row in rows} == {arm: len(people) for arm, people in arms.items()}


def test_what_cannot_be_asked_is_refused_by_its_name(seed: int) -> None:
    with recorded(lived(seed)) as shop:
        for param, given in (
            ("control", {"control": "z"}),
            ("weights", {"weights": ["a"]}),
            ("weights", {"weights": ["a=1"]}),
        ):
            with pytest.raises(InvalidValue) as caught:
                shop.analytics.experiment(assignment="assigned", arm="variant", **given)  # type: ignore[arg-type]
            assert caught.value.param == param
        with pytest.raises(InvalidValue):
            shop.analytics.experiment(metric="bought")
        with pytest.raises(NotFound):
            shop.analytics.experiment(broadcast="no_such")
        with pytest.raises(InvalidValue, match="no event of the type 'assignd' was ever sent; did you mean 'assigned'"):
            shop.analytics.experiment(assignment="assignd")
        empty = shop.analytics.experiment(assignment="identify")
        assert (empty.rows, experiment_picture(empty).summary) == ([], "There are no two arms to compare.")
