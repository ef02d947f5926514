"""What an event earns: tables and their versions, caps, limits, multipliers; what is late, ahead, repeated or odd."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from tests.capabilities.points_stage import STARTS_AT, Stage
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time, parse_time
from threadline.testing import scenarios


def earned(stage: Stage, who: str = "ada") -> int:
    return int(stage.points(who)["earned"])


def anomalies(stage: Stage) -> list[tuple[str, str]]:
    return sorted((each["kind"], each["of"]) for each in stage.points()["anomalies"])


@pytest.mark.parametrize(
    ("type", "points"),
    [
        ("conversation_started", 10),
        ("CONVERSATION_START", 10),
        ("tool_used", 5),
        ("TOOL_USE", 5),
        ("app_opened", 1),
        ("DAILY_OPEN", 1),
        ("Application Opened", 1),
        ("result_shared", 15),
        ("SHARE_RESULT", 15),
        ("page", 0),
        ("anything else", 0),
        ("points_earned", 0),
    ],
)
def test_the_shipped_table(type: str, points: int) -> None:
    stage = Stage()
    stage.tell(type, properties={"points": 7})
    assert earned(stage) == points


def test_a_cause_earns_once_however_often_it_is_told() -> None:
    stage = Stage()
    for _ in range(5):
        stage.tell("tool_used", key="same")
    assert earned(stage) == 5
    assert stage.types().count("points_earned") == 1


def test_a_line_tells_its_cause_its_rule_and_its_table() -> None:
    stage = Stage()
    receipt = stage.tell("SHARE_RESULT")
    [line] = stage.ask("points_ledger", id="user_id:ada")["lines"]
    assert (line["cause"], line["rule"], line["table"], line["points"]) == (receipt.id, "result_shared", "1", 15)


def test_opening_earns_once_a_day_under_whichever_name() -> None:
    stage = Stage()
    for minutes in range(0, 3 * 24 * 60, 60):
        stage.now = STARTS_AT + minutes * MINUTE
        stage.tell("DAILY_OPEN" if minutes % 120 else "app_opened")
    assert earned(stage) == 3


def test_the_day_of_a_cap_is_that_of_the_definitions_zone() -> None:
    stage = Stage("timezone: America/Sao_Paulo")
    for at in (STARTS_AT + 2 * HOUR + 59 * MINUTE, STARTS_AT + 3 * HOUR):
        stage.now = at
        stage.tell("app_opened")
    assert [day["day"] for day in stage.points()["days"]] == ["2026-01-01", "2025-12-31"]


def test_a_burst_of_105_events_in_an_hour_earns_100_times_and_is_flagged_once() -> None:
    stage = Stage()
    for number in range(105):
        stage.now = STARTS_AT + number * 30 * SECOND
        stage.tell("tool_used")
        stage.tell("tool_used", key=f"key-{2 * number + 1}")  # the same again: a duplicate costs no quota
    assert earned(stage) == 500
    assert anomalies(stage) == [("rate", "2026-01-01T00:00Z")]
    assert stage.types().count("points_anomaly_detected") == 1
    stage.now = STARTS_AT + HOUR
    stage.tell("tool_used")
    assert earned(stage) == 505


def test_unknown_types_cost_no_quota() -> None:
    stage = Stage()
    for _ in range(150):
        stage.tell("mystery")
    stage.tell("tool_used")
    assert earned(stage) == 5


@pytest.mark.parametrize(
    ("age", "points"), [(0, 5), (7 * DAY, 5), (7 * DAY + 1, 0), (300 * DAY, 0), (-DAY, 5), (-HOUR, 5)]
)
def test_events_up_to_seven_days_back_and_a_day_ahead_count(age: int, points: int) -> None:
    stage = Stage()
    stage.tell("tool_used", at=stage.now - age)
    assert earned(stage) == points
    assert stage.types()[-1 if points else 0] in ("tool_used", "points_earned")


def test_what_lies_further_ahead_is_kept_and_flagged() -> None:
    stage = Stage()
    stage.tell("tool_used", at=stage.now + DAY + 1)
    assert earned(stage) == 0
    assert anomalies(stage) == [("impossible_time", "2026-01-01")]
    assert stage.types().count("tool_used") == 1


def test_nothing_is_earned_ahead_of_time() -> None:
    stage = Stage()
    stage.tell("tool_used", at=stage.now + 20 * HOUR)
    [line] = stage.ask("points_ledger", id="user_id:ada")["lines"]
    assert line["occurred_at"] == format_time(STARTS_AT)


def test_history_that_is_imported_earns_for_its_own_days() -> None:
    stage = Stage()
    for back in (400, 100, 40):
        stage.tell("tool_used", at=stage.now - back * DAY, historical=True)
    assert earned(stage) == 15
    assert [day["earned"] for day in stage.points()["days"]] == [5]


TABLES = """
points:
  tables:
    - version: spring
      from: 2026-03-01T00:00:00Z
      earn:
        tool_used: {points: 8, per_day: 2}
        app_opened: false
        quiz_won: {points: 20, cooldown: 10m}
    - version: 3
      from: 2026-03-10T00:00:00Z
      earn: {quiz_won: 1}
"""
MARCH = STARTS_AT + 59 * DAY


@pytest.mark.parametrize(
    ("at", "type", "points"),
    [
        (MARCH - 1, "tool_used", 5),
        (MARCH, "tool_used", 8),
        (MARCH - 1, "quiz_won", 0),
        (MARCH, "quiz_won", 20),
        (MARCH - 1, "app_opened", 1),
        (MARCH, "app_opened", 0),
        (MARCH, "DAILY_OPEN", 0),
        (MARCH + 9 * DAY, "quiz_won", 1),
        (MARCH + 9 * DAY, "tool_used", 8),
        (MARCH + 9 * DAY, "result_shared", 15),
    ],
)
def test_the_table_of_the_instant_decides(at: int, type: str, points: int) -> None:
    stage = Stage(TABLES)
    stage.now = at
    stage.tell(type)
    assert earned(stage) == points


def test_a_late_event_earns_by_the_table_of_its_own_time() -> None:
    stage = Stage(TABLES)
    stage.now = MARCH + DAY
    stage.tell("tool_used", at=MARCH - DAY)
    assert earned(stage) == 5


def test_a_new_table_changes_nothing_that_was_awarded() -> None:
    stage = Stage()
    stage.tell("tool_used")
    other = Stage("points: {tables: [{version: 2, earn: {tool_used: 50}}]}", store=stage.engine.store)
    other.now = stage.now + HOUR
    assert earned(other) == 5
    other.tell("tool_used", key="another")
    assert earned(other) == 55


@given(scenarios.randoms)
@settings(max_examples=30)
def test_caps_and_cooldowns_hold_in_any_order_of_arrival(random: Random) -> None:
    stage = Stage(TABLES)
    stage.now = MARCH + 3 * DAY
    times = [MARCH + random.randrange(0, 3 * DAY, 5 * MINUTE) for _ in range(40)]
    for at in times:
        stage.tell(random.choice(("tool_used", "quiz_won")), at=at)
    lines = stage.ask("points_ledger", id="user_id:ada", limit=500)["lines"]
    tools = [line["occurred_at"][:10] for line in lines if line["rule"] == "tool_used"]
    assert all(tools.count(day) <= 2 for day in tools)
    wins = sorted(line["occurred_at"] for line in lines if line["rule"] == "quiz_won")
    assert all(later[:16] >= _ten_minutes_after(earlier) for earlier, later in pairwise(wins))
    assert tools
    assert wins


def _ten_minutes_after(text: str) -> str:
    return format_time(parse_time(text) + 10 * MINUTE)[:16]


MULTIPLIED = """
features:
  opened: {aggregate: count, events: app_opened}
points:
  multipliers:
    - {by: features.opened, from: 3, times: 1.5}
    - {by: features.opened.value, from: 5, times: "2.35"}
    - {by: features.monetary_total, from: 1, times: 100}
"""


def test_the_largest_multiplier_that_applies_counts_and_points_are_whole() -> None:
    stage = Stage(MULTIPLIED)
    amounts = []
    for day in range(6):
        stage.now = STARTS_AT + day * DAY
        stage.tell("app_opened")
        stage.tell("tool_used")
        lines = stage.ask("points_ledger", id="user_id:ada")["lines"]
        amounts.append(next(line["points"] for line in lines if line["rule"] == "tool_used"))
    assert amounts == [5, 5, 7, 7, 11, 11]  # 5 × 1.5 = 7.5 and 5 × 2.35 = 11.75, rounded down


@pytest.mark.parametrize(("value", "applies"), [("80.00", True), (5e1, True), ("49.99", False), ("eighty", False)])
def test_a_multiplier_compares_as_a_condition_does(value: Any, applies: bool) -> None:
    least = "features: {last: {aggregate: last, events: rated, of: v}}\n"
    least += "points: {multipliers: [{by: features.last, from: 50, times: 2}]}"
    stage = Stage(least)
    stage.tell("rated", properties={"v": value})
    stage.tell("tool_used")
    lines = stage.ask("points_ledger", id="user_id:ada")["lines"]
    assert next(line["points"] for line in lines if line["rule"] == "tool_used") == (10 if applies else 5)


def test_a_day_out_of_proportion_is_flagged_once() -> None:
    stage = Stage("points: {tables: [{version: 2, earn: {tool_used: 10}}]}")
    for day in range(5):
        stage.now = STARTS_AT + day * DAY
        stage.tell("tool_used")
    stage.now = STARTS_AT + 5 * DAY
    for _ in range(10):
        stage.tell("tool_used")
    assert anomalies(stage) == []
    for _ in range(10):
        stage.tell("tool_used")
    assert anomalies(stage) == [("points_spike", "2026-01-06")]
    assert stage.types().count("points_anomaly_detected") == 1


def test_points_can_be_switched_off() -> None:
    stage = Stage("points: false")
    stage.tell("tool_used")
    assert stage.types() == ["tool_used"]
    assert "points" not in stage.engine.catalogue.index


def _told(count: int) -> list[Event]:
    return [
        Event(
            type="tool_used",
            identifiers=(Identifier("user_id", "ada"),),
            occurred_at=STARTS_AT - number * HOUR,
            key=f"{number}",
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("size", [1, 7, 60])
def test_no_cutting_into_calls_changes_what_is_earned(size: int) -> None:
    def dumped(size: int) -> Any:
        stage = Stage()
        events = _told(60)
        for start in range(0, 60, size):
            stage.engine.recorder.record(events[start : start + size])
        return stage.points()

    assert dumped(size) == dumped(60)


def test_a_late_event_that_repairs_a_streak_changes_no_points_and_is_flagged() -> None:
    stage = Stage("", "streaks")
    for day in (0, 1, 2, 3, 5):
        stage.now = STARTS_AT + day * DAY
        stage.tell("tool_used")
    before = stage.ask("points_ledger", id="user_id:ada")["lines"]
    stage.tell("page", at=STARTS_AT + 4 * DAY)  # it fills the gap and earns nothing itself
    person = stage.engine.reader.person("default", "user_id:ada")
    assert stage.engine.reader.views(person, stage.now + 1, names=["streaks"])["streaks"]["daily"]["current"] == 6
    assert stage.ask("points_ledger", id="user_id:ada")["lines"] == before
    stage.now += DAY
    stage.tell("tool_used")
    assert anomalies(stage) == [("streak_jump", "2026-01-07")]
    stage.now += DAY
    stage.tell("tool_used")
    assert len(anomalies(stage)) == 1


def test_a_streak_that_grows_day_by_day_is_no_jump() -> None:
    stage = Stage("", "streaks")
    for day in range(40):
        stage.now = STARTS_AT + day * DAY
        stage.tell("tool_used", at=stage.now - (HOUR if day % 3 else 0))
    assert anomalies(stage) == []
