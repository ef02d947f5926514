"""The worked tables of docs/worked/interests.md, from the projection alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.capabilities.test_interests_laws import action, declared, folded
from threadline.capabilities.profile.interests.ranking import Ranked, rank
from threadline.capabilities.profile.interests.scoring import period_weight
from threadline.kernel.event import Recorded
from threadline.kernel.time import DAY, HOUR, parse_time

PAGE = (Path(__file__).parents[2] / "docs/worked/interests.md").read_text(encoding="utf-8")
BEGINS = parse_time("2026-01-01T00:00:00Z")


def table(heading: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(r"(?:^\|.*\|\n)+", section, re.MULTILINE)
    assert found is not None, heading
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[0].splitlines()[2:]]


def weights(ranked: Ranked) -> dict[str, str]:
    return {each.value: f"{each.units / each.scale:.2f}" for each in ranked.entries}


@pytest.fixture(scope="module")
def shifting() -> list[list[str]]:
    return table("An interest that shifts")


def test_the_table_is_the_published_one(shifting: list[list[str]]) -> None:
    assert [row[0] for row in shifting] == ["1", "5", "10", "15", "20", "25", "30"]
    assert [row[3] for row in shifting] == ["43.65", "40.35", "35.15", "29.50", "22.85", "16.65", "14.50"]
    assert [row[5] for row in shifting] == ["9.70", "20.30", "24.70", "27.00", "29.30", "31.70", "34.00"]


@pytest.mark.parametrize("moment", [0, 1, 12 * HOUR, DAY - 1], ids=["midnight", "1us", "noon", "last"])
def test_an_interest_that_shifts(shifting: list[list[str]], moment: int) -> None:
    known = declared()
    events = [action(BEGINS + n * DAY // 2, f"A{n}", "A") for n in range(45)]
    events += [action(BEGINS + n * DAY, f"B{n}", "B") for n in range(10)]
    for day, weight, count_a, weight_a, count_b, weight_b, leader in shifting:
        now = BEGINS + (29 + int(day)) * DAY + moment
        events += _more(events, "A", 45 + int(count_a), now)
        events += _more(events, "B", 10 + int(count_b), now)
        ranked = rank(known, folded(known, events), now)["Article"]
        assert f"{ranked.previous_weight / 100:.2f}" == weight
        assert weights(ranked) == {"A": weight_a, "B": weight_b}
        assert ranked.entries[0].value == leader


def _more(events: list[Recorded], value: str, wanted: int, now: int) -> list[Recorded]:
    """Actions an instant ago, within this period, until there are as many of a value as are wanted."""
    there = sum(each.event.properties["scopes"][0]["value"] == value for each in events)
    at = max(now - 1, BEGINS + 30 * DAY)
    return [action(at, f"{value} later {n}", value) for n in range(there, wanted)]


def test_somebody_who_stays_away() -> None:
    known = declared()
    events = [action(BEGINS + n * HOUR, n, "A") for n in range(100)]
    for day, weight, weighted in table("Somebody who stays away"):
        ranked = rank(known, folded(known, events), BEGINS + (int(day) - 1) * DAY + 12 * HOUR)
        assert (weights(ranked["Article"])["A"] if ranked else "0.00") == weighted, day
        assert f"{int(weighted.replace('.', '')) / 10_000:.2f}" == weight


def test_decay() -> None:
    known = declared("interests: {mode: decay, half_life: 7d}")
    events = [action(BEGINS + n, n, "A") for n in range(16)]
    for day, weighted in table("Decay"):
        ranked = rank(known, folded(known, events), BEGINS + int(day) * DAY + 12 * HOUR)["Article"]
        assert f"{ranked.entries[0].weight:.6f}" == weighted


def test_a_weight_never_rises_as_time_goes_by() -> None:
    for length in (1, 7, 30, 90, 100):
        weights = [period_weight(age, length - 1 - day, length) for age in range(6) for day in range(length)]
        assert weights == sorted(weights, reverse=True)
        assert weights[:length] == [100] * length
        assert weights[-1] == 0


@pytest.mark.parametrize(("length", "expected"), [(30, [97, 93, 90]), (7, [86, 71, 57]), (90, [99, 98, 97])])
def test_weights_are_rounded_to_two_decimals(length: int, expected: list[int]) -> None:
    assert [period_weight(1, length - 1 - day, length) for day in range(3)] == expected


def test_a_late_action_moves_the_first_period() -> None:
    """Periods count from the first action, also if it is told last."""
    known = declared("interests: {period: 10d}")
    events = [action(BEGINS + 9 * DAY, 1), action(BEGINS + 11 * DAY, 2), action(BEGINS, 3)]
    for told in (events, events[::-1]):
        ranked = rank(known, folded(known, told), BEGINS + 11 * DAY + HOUR)["Article"]
        assert ranked.period_start == BEGINS // DAY + 10
        assert ranked.entries[0].by_age == (1, 2, 0)


def test_a_topic_has_a_period_of_its_own() -> None:
    known = declared("interests:\n  topics:\n    Course: {period: 7d, counting: unique}\n")
    events = [action(BEGINS + n, f"{topic} {n}", topic=topic) for topic in ("Article", "Course") for n in range(5)]
    ranked = rank(known, folded(known, events), BEGINS + 8 * DAY)
    assert weights(ranked["Article"]) == {"A": "5.00"}
    assert weights(ranked["Course"]) == {"A": "0.71"}
