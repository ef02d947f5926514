"""Limits hold for what lies far behind the newest: what a bounded state has let go of counts all the same."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.points_stage import STARTS_AT, Stage
from threadline.capabilities.profile.points.events import POINTS_ANOMALY_DETECTED, POINTS_EARNED
from threadline.capabilities.profile.points.ledger import COOLS_MAX
from threadline.kernel.event import CLAIMED_HISTORY, Event, Identifier
from threadline.kernel.limits import POINTS_ANOMALIES_MAX, POINTS_RULES_MAX
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time, parse_time
from threadline.testing import scenarios

YEARS_AGO = STARTS_AT - 800 * DAY
COOLING = """
points:
  events_per_hour: 1000
  tables: [{version: 2, earn: {quiz_won: {points: 20, cooldown: 10m}}}]
"""


def told(type: str, at: int, number: int, **fields: Any) -> Event:
    return Event(
        type=type,
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=at,
        key=f"{type} {number}",
        source_type="external",
        **fields,
    )


def lines(stage: Stage, rule: str) -> list[int]:
    """When the lines of a rule occurred, the oldest first."""
    person = stage.engine.reader.person("default", "user_id:ada")
    found = stage.engine.reader.events(person, types=frozenset({POINTS_EARNED}), limit=1_000)
    return [each.event.occurred_at for each in found if each.event.properties["rule"] == rule]


def imported(definitions: str, events: list[Event], size: int) -> Stage:
    stage = Stage(definitions)
    for start in range(0, len(events), size):
        stage.engine.recorder.record(events[start : start + size])
    return stage


# --- history --------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4 * 60)), min_size=1, max_size=60),
    scenarios.randoms,
    st.sampled_from([1, 7, 100]),
)
@settings(max_examples=40)
def test_a_cap_of_a_day_holds_in_any_order_of_import(moments: list[tuple[int, int]], random: Random, size: int) -> None:
    times = [YEARS_AGO + day * 5 * DAY + minute * MINUTE for day, minute in moments]
    events = [told("app_opened", at, number, historical=True) for number, at in enumerate(times)]
    random.shuffle(events)
    stage = imported("", events, size)
    assert stage.points()["earned"] == len({at // DAY for at in times})


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 59)), min_size=1, max_size=60), scenarios.randoms)
@settings(max_examples=40)
def test_the_limit_of_an_hour_holds_in_any_order_of_import(moments: list[tuple[int, int]], random: Random) -> None:
    times = [YEARS_AGO + period * 9 * DAY + minute * MINUTE for period, minute in moments]
    events = [told("tool_used", at, number, historical=True) for number, at in enumerate(times)]
    random.shuffle(events)
    stage = imported("points: {events_per_hour: 3}", events, 10)
    hours = Counter(at // HOUR for at in times)
    assert stage.points()["earned"] == 5 * sum(min(count, 3) for count in hours.values())
    over = {f"{format_time(hour * HOUR)[:16]}Z" for hour, count in hours.items() if count > 3}
    assert {each["of"] for each in stage.points()["anomalies"]} == over


@given(st.permutations(range(4)))
def test_files_may_be_imported_in_any_order(years: list[int]) -> None:
    stage = Stage()
    for year in years:
        start = YEARS_AGO + year * 200 * DAY
        stage.engine.recorder.record(
            [told("app_opened", start + step * 6 * HOUR, 1_000 * year + step, historical=True) for step in range(80)]
        )
    assert stage.points()["earned"] == 80


def test_old_days_of_somebody_who_is_active_now_have_limits() -> None:
    stage = Stage()
    stage.tell("tool_used")
    for number in range(105):
        stage.tell("tool_used", at=YEARS_AGO + number * SECOND, historical=True)
    for number in range(5):
        stage.tell("app_opened", at=YEARS_AGO + DAY + number * HOUR, historical=True)
    assert stage.points()["earned"] == 5 + 500 + 1


def test_a_day_is_that_of_the_definitions_zone_for_what_is_forgotten_too() -> None:
    stage = Stage("timezone: America/Sao_Paulo")
    stage.tell("app_opened")
    midnight = parse_time("2020-03-01T03:00:00Z")
    for at in (midnight - 1, midnight, midnight + DAY - 1, midnight - DAY, midnight + DAY):
        stage.tell("app_opened", at=at, historical=True)
    assert stage.points()["earned"] == 4


def test_a_merge_does_not_forget() -> None:
    stage = Stage()
    stage.tell("app_opened", "ada")
    stage.tell("app_opened", at=YEARS_AGO, identifiers=(Identifier("anonymous_id", "phone"),), historical=True)
    both = (Identifier("user_id", "ada"), Identifier("anonymous_id", "phone"))
    stage.engine.recorder.record(
        [
            Event(type="page", identifiers=both, occurred_at=STARTS_AT, key="joined", source_type="external"),
            told("app_opened", YEARS_AGO + HOUR, 1, historical=True),
        ]
    )
    assert stage.points()["earned"] == 2


# --- who says that it is history ------------------------------------------------------------


@pytest.mark.parametrize(("age", "points"), [(0, 5), (7 * DAY, 5), (7 * DAY + 1, 0), (300 * DAY, 0)])
def test_what_a_write_key_calls_history_is_as_old_as_it_is(age: int, points: int) -> None:
    stage = Stage()
    stage.tell("tool_used", at=stage.now - age, historical=True, marks=(CLAIMED_HISTORY,))
    assert stage.points()["earned"] == points


def test_what_a_write_key_calls_history_is_looked_at_as_anything_else() -> None:
    stage = Stage("", "streaks")
    for day in (0, 1, 2, 3, 5):
        stage.now = STARTS_AT + day * DAY
        stage.tell("tool_used")
    stage.tell("page", at=STARTS_AT + 4 * DAY)
    stage.now += DAY
    stage.tell("tool_used", historical=True, marks=(CLAIMED_HISTORY,))
    assert [each["kind"] for each in stage.points()["anomalies"]] == ["streak_jump"]


# --- cooldowns ------------------------------------------------------------------------------


def test_a_cooldown_holds_for_what_comes_late_after_many_others() -> None:
    stage = Stage(COOLING)
    stage.now += DAY
    for number in range(COOLS_MAX + 6):
        stage.tell("quiz_won", at=STARTS_AT + number * 10 * MINUTE)
    before = stage.points()["earned"]
    for number in range(10):
        stage.tell("quiz_won", at=STARTS_AT - HOUR + number * SECOND)
    assert stage.points()["earned"] - before == 20
    # The state holds none of these instants; the last that is free lies right between two of the line.
    stage.tell("quiz_won", at=STARTS_AT - 10 * MINUTE + 1)
    stage.tell("quiz_won", at=STARTS_AT - 10 * MINUTE)
    assert stage.points()["earned"] - before == 40


@given(scenarios.randoms)
@settings(max_examples=15)
def test_no_order_of_import_earns_twice_within_a_cooldown(random: Random) -> None:
    times = [YEARS_AGO + random.randrange(0, 20 * DAY, 3 * MINUTE) for _ in range(150)]
    times += [at + 9 * MINUTE for at in times]
    random.shuffle(times)
    stage = imported(COOLING, [told("quiz_won", at, n, historical=True) for n, at in enumerate(times)], 50)
    found = lines(stage, "quiz_won")
    assert len(found) > COOLS_MAX
    assert all(later - earlier >= 10 * MINUTE for earlier, later in pairwise(found))


@pytest.mark.parametrize("limit", ["per_day: 1", "cooldown: 10m"])
def test_a_rule_that_the_state_had_no_room_for_keeps_its_limits(limit: str) -> None:
    stage = Stage(f"points: {{events_per_hour: 500, tables: [{{version: 2, earn: {{z: {{points: 7, {limit}}}}}}}]}}")
    for number in range(POINTS_RULES_MAX):
        properties = {"points": 1, "rule": f"rule-{number}", "cooldown": 1}
        stage.tell(POINTS_EARNED, properties=properties, source_type="direct")
    for _ in range(3):
        stage.tell("z")
    assert len(lines(stage, "z")) == 1


# --- anomalies ------------------------------------------------------------------------------


def test_an_anomaly_is_told_once_also_after_many_newer_ones() -> None:
    stage = Stage("points: {events_per_hour: 1}")
    for hour in range(POINTS_ANOMALIES_MAX + 2):
        for _ in range(2):
            stage.tell("tool_used", at=STARTS_AT - hour * HOUR)
    for _ in range(5):
        stage.tell("tool_used", at=STARTS_AT - (POINTS_ANOMALIES_MAX + 1) * HOUR)
    assert stage.types().count(POINTS_ANOMALY_DETECTED) == POINTS_ANOMALIES_MAX + 2
