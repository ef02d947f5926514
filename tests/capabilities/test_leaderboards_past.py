"""Boards of the past: as they were, who stood around somebody, and the regions of then and now."""

from __future__ import annotations

import pytest

from tests.capabilities.leaderboards_stage import BOARDS, STREAKS, board, staged, standing
from tests.capabilities.points_stage import STARTS_AT
from threadline.kernel.time import DAY, HOUR, format_time


def test_a_past_instant_is_as_it_was() -> None:
    stage = staged(STREAKS)
    told = {}
    for day in range(9):
        stage.now = STARTS_AT + day * DAY
        for number in range(4):
            if day % (number + 1) == 0:
                stage.tell("page", f"u{number}")
        stage.now += HOUR
        told[stage.now + 1] = set(board(stage, "streak"))
    for at, then in told.items():
        again = stage.ask("leaderboards_top", name="streak", at=format_time(at))
        assert {(e["rank"], e["identifiers"][0], e["score"]) for e in again["places"]} == then
        assert again["people_read"] == 4


@pytest.mark.parametrize("around", [0, 1, 4, 100])
def test_who_stood_around_somebody_is_the_same_from_rows_and_from_the_log(around: int) -> None:
    stage = staged(BOARDS)
    for number in range(15):
        for _ in range(1 + number // 5):
            stage.tell("tool_used", f"u{number}")
    stage.tell("page", "nobody")
    at = format_time(stage.now)
    people = [*(f"u{number}" for number in range(15)), "nobody"]
    asked = {"name": "points", "period": "day", "around": around}
    live = {who: standing(stage, who, **asked) for who in people}
    stage.now += 9 * DAY
    for who in people:
        past = standing(stage, who, at=at, **asked)
        assert (past.pop("people_read"), live[who].pop("people_read")) == (16, 0)
        assert {**past, "as_of": ""} == {**live[who], "as_of": ""}
        assert bool(past["places"]) == (who != "nobody" and around > 0)


def test_a_region_of_the_past_is_one_of_the_present() -> None:
    stage = staged(BOARDS)
    countries = ("IT", 7, 2.5, True, None, "", "I\nT", "x" * 101)
    for number, country in enumerate(countries):
        stage.tell("tool_used", f"u{number}")
        stage.tell("identify", f"u{number}", properties={"country": country})
    stage.tell("tool_used", "unknown")
    at = format_time(stage.now)
    scopes = [f"country={country}" for country in (*countries, "None", "true") if country != ""]
    live = [board(stage, "points", period="day", scope=scope) for scope in scopes]
    stage.now += 9 * DAY
    past = [board(stage, "points", period="day", scope=scope, at=at) for scope in scopes]
    assert past == live
    assert [scope for scope, found in zip(scopes, live, strict=True) if found] == ["country=IT", "country=7"]
