"""Scores against a reckoner that counts, for each person, how many are strictly below."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.operations.rfm import Rfm, RfmParams, rfm
from threadline.engine.context import Context
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, format_time, parse_time
from threadline.settings import Settings

START = parse_time("2026-01-01T00:00:00Z")
NOW = START + 60 * DAY - HOUR
Lived = list[tuple[str, int, int]]
"""(person, instant, spent)."""


def lived(seed: int, people: int) -> Lived:
    random = Random(seed)
    return [
        (f"p{int(random.paretovariate(0.8)) % people}", START + random.randrange(59) * DAY, random.randrange(0, 40, 5))
        for _ in range(200)
    ]


def asked(events: Lived, **params: object) -> Rfm:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    try:
        engine.recorder.record(
            [
                Event(
                    type="purchase_completed",
                    identifiers=(Identifier("user_id", who),),
                    occurred_at=at,
                    key=str(n),
                    source="shop",
                    properties={"total": spent},
                )
                for n, (who, at, spent) in enumerate(events)
            ]
        )
        result: Rfm = rfm.run(Context(engine, "default", NOW), RfmParams(**params))  # type: ignore[arg-type]
        return result
    finally:
        engine.close()


def group_of(recency: int, frequency: int) -> str:
    """The table of the page, line by line."""
    if recency >= 4:
        return {1: "new", 2: "promising", 3: "promising"}.get(frequency, "champions")
    if recency == 3:
        return "loyal" if frequency >= 4 else "waning"
    return "at risk" if frequency >= 3 else "asleep"


def scored(events: Lived) -> list[tuple[object, ...]]:
    """(recency, frequency, monetary, group, days, purchases, value) of everybody, in no order."""
    facts = {}
    for person in {each[0] for each in events}:
        own = [each for each in events if each[0] == person]
        facts[person] = (max(each[1] for each in own), len(own), sum(each[2] for each in own))
    rows: list[tuple[object, ...]] = []
    for fact in facts.values():
        r, f, m = (1 + 5 * sum(other[n] < fact[n] for other in facts.values()) // len(facts) for n in range(3))
        rows.append((r, f, m, group_of(r, f), (NOW - fact[0]) // DAY, fact[1], fact[2]))
    return rows


@pytest.mark.parametrize(("seed", "people"), [(1, 40), (2, 40), (3, 11), (4, 5), (5, 3), (6, 1)])
def test_scores_are_how_many_people_are_strictly_below(seed: int, people: int) -> None:
    events = lived(seed, people)
    result = asked(events)
    expected = scored(events)
    found = [(p.recency, p.frequency, p.monetary, p.group, p.days, p.purchases, p.value) for p in result.people]
    assert Counter(found) == Counter(expected)
    assert [sum(each[:3]) for each in found] == sorted((sum(each[:3]) for each in found), reverse=True)
    cells = Counter(each[:2] for each in expected)
    assert {(row.recency, row.frequency): row.people for row in result.rows} == cells
    assert sum(row.value for row in result.rows) == sum(each[2] for each in events)
    assert all(row.group == group_of(row.recency, row.frequency) for row in result.rows)


def test_a_group_lists_its_people_and_counts_everybody() -> None:
    events = lived(1, 40)
    result = asked(events, group="asleep", most=2)
    assert [each.group for each in result.people] == ["asleep", "asleep"]
    assert sum(row.people for row in result.rows) == len({each[0] for each in events})


def test_a_range_counts_days_to_its_end() -> None:
    result = asked([("a", START, 5), ("a", START + 9 * DAY, 5)], stop=format_time(START + 3 * DAY))
    assert [(each.days, each.purchases) for each in result.people] == [(3, 1)]


def test_without_purchases_there_is_nobody_and_a_feature_is_no_value_of_a_purchase() -> None:
    assert (asked([]).rows, asked([]).people) == ([], [])
    engine = open_engine("memory:", Settings(), lambda: NOW)
    with pytest.raises(InvalidValue) as caught:
        rfm.run(Context(engine, "default", NOW), RfmParams(value="features.x"))
    engine.close()
    assert caught.value.param == "value"
