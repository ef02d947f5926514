"""Streaks, points and leaderboards that are being written: what people would have, beside what they have once it is in
force, and nothing left behind."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.capabilities.decide.drafts.operations.leaderboards import PLACES
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.time import DAY, HOUR, SECOND

IN_FORCE = """
features:
  clicks: {aggregate: count, events: clicked}
streaks:
  reading: {events: clicked}
points:
  tables: [{version: ours, earn: {purchase_completed: 10, clicked: 1}}]
leaderboards:
  top_clickers: {score: features.clicks}
"""
PEOPLE = 30
DAYS = 12


@cache
def in_force() -> Catalogue:
    return Asked(definitions=IN_FORCE).engine.catalogue


def days_of(n: int) -> list[int]:
    """The days before today, counted back from 1, on which somebody has clicked."""
    return [day for day in range(DAYS) if random.Random(n * 100 + day).random() < n / PEOPLE]


def lived(catalogue: Catalogue) -> Asked:
    """Everybody's clicks and purchases, as they happened."""
    asked = Asked(catalogue=catalogue)
    for day in reversed(range(DAYS)):
        asked.now = STARTS_AT + (DAYS - day) * DAY
        for n in range(PEOPLE):
            if day in days_of(n):
                asked.tell("clicked", user_id=f"u{n}", properties={})
            if day == n % DAYS:
                asked.tell("purchase_completed", user_id=f"u{n}", properties={"total": n, "currency": "EUR"})
    asked.now += HOUR
    return asked


@cache
def stored() -> Asked:
    return lived(in_force())


@pytest.fixture
def asked() -> Asked:
    """What previews look at; none of them changes it."""
    return stored()


def lengths(days: list[int]) -> tuple[int, int]:
    """Days in a row up to today, and the most: yesterday is enough to go on."""
    runs: list[list[int]] = []
    for day in sorted(days):
        if runs and runs[-1][-1] == day - 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    current = len(runs[0]) if runs and runs[0][0] <= 1 else 0
    return current, max(map(len, runs), default=0)


def user(entry: dict[str, Any]) -> str:
    return str(entry["identifiers"][0])


# --- streaks -----------------------------------------------------------------------------------


def test_a_streak_that_is_new_is_counted_of_the_days_of_each_person(asked: Asked) -> None:
    answer = asked.ask("streaks_preview", text="events: clicked", name="clicking")
    expected = {f"user_id:u{n}": lengths(days_of(n)) for n in range(PEOPLE)}
    assert (answer["exact"], answer["people_read"], answer["changed"]) == (True, PEOPLE, None)
    assert answer["running"]["people"] == sum(current > 0 for current, _ in expected.values()) > 5
    assert answer["ever"]["people"] == sum(longest > 0 for _, longest in expected.values()) < PEOPLE
    assert answer["longest"] == max(longest for _, longest in expected.values())
    shown = [(each["current"], each["longest"]) for each in answer["samples"]]
    assert shown == sorted(expected.values(), reverse=True)[:10]
    assert all(expected[user(each)] == (each["current"], each["longest"]) for each in answer["samples"])
    assert "clicking" not in asked.ask("streaks_of", id="user_id:u29")["streaks"]


def test_a_streak_in_force_is_compared_with_its_draft(asked: Asked) -> None:
    same = asked.ask("streaks_preview", text="events: clicked", name="reading")
    assert same["changed"]["people"] == 0
    other = asked.ask("streaks_preview", text="events: purchase_completed", name="reading")
    bought = {n: (int(n % DAYS <= 1), 1) for n in range(PEOPLE)}
    changed = sum(lengths(days_of(n)) != bought[n] for n in range(PEOPLE))
    assert other["changed"]["people"] == changed > 5


DRAFTS_OF_STREAKS = (
    "{events: clicked, freezes: {start: 2, max: 2}}",
    "{events: [clicked, purchase_completed], cadence: week, times: 2}",
)


@pytest.mark.parametrize("text", DRAFTS_OF_STREAKS)
def test_a_streak_is_previewed_as_it_is_once_in_force(asked: Asked, text: str) -> None:
    shown = asked.ask("streaks_preview", text=text, name="tried")
    live = lived(Asked(definitions=f"streaks:\n  tried: {text}").engine.catalogue)
    streaks = [live.ask("streaks_of", id=f"user_id:u{n}")["streaks"]["tried"] for n in range(PEOPLE)]
    assert shown["running"]["people"] == sum(each["current"] > 0 for each in streaks)
    assert shown["ever"]["people"] == sum(each["longest"] > 0 for each in streaks)
    assert shown["longest"] == max(each["longest"] for each in streaks)


# --- points ------------------------------------------------------------------------------------


def test_points_by_tables_in_force_are_those_that_people_have(asked: Asked) -> None:
    answer = asked.ask("points_preview", text="tables: [{version: ours, earn: {purchase_completed: 10, clicked: 1}}]")
    earned = {f"user_id:u{n}": asked.ask("points_of", id=f"user_id:u{n}")["earned"] for n in range(PEOPLE)}
    clicks = sum(len(days_of(n)) for n in range(PEOPLE))
    rules = {each["rule"]: (each["points"], each["points_now"]) for each in answer["rules"]}
    assert rules["clicked"] == (clicks, clicks)
    assert rules["purchase_completed"] == (10 * PEOPLE, 10 * PEOPLE)
    assert answer["points"] == answer["points_now"] == sum(earned.values())
    assert answer["changed"]["people"] == 0
    assert answer["exact"]
    for each in answer["samples"]:
        assert each["points"] == each["points_now"] == earned[user(each)] == sum(each["rules"].values())
    assert [each["points"] for each in answer["samples"]] == sorted(earned.values(), reverse=True)[:10]


def test_points_of_a_draft_are_compared_rule_by_rule_and_nobody_gets_them(asked: Asked) -> None:
    before = [asked.ask("points_of", id=f"user_id:u{n}")["balance"] for n in range(PEOPLE)]
    draft = "tables: [{version: ours, earn: {purchase_completed: {points: 5, per_day: 1}, clicked: 3}}]"
    answer = asked.ask("points_preview", text=draft)
    clicks = Counter({f"u{n}": len(days_of(n)) for n in range(PEOPLE)})
    rules = {each["rule"]: each for each in answer["rules"]}
    assert (rules["clicked"]["points"], rules["clicked"]["points_now"]) == (3 * clicks.total(), clicks.total())
    assert rules["clicked"]["people"] == sum(count > 0 for count in clicks.values())
    assert rules["purchase_completed"]["points"] == 5 * PEOPLE
    assert answer["earning"]["people"] == PEOPLE
    assert [asked.ask("points_of", id=f"user_id:u{n}")["balance"] for n in range(PEOPLE)] == before


@pytest.mark.parametrize(
    "text",
    [
        "tables: [{version: ours, earn: {clicked: {points: 7, cooldown: 1d}}}]",
        "tables: [{version: ours, earn: {clicked: 2}}]\nmultipliers: [{by: streaks.daily.current, from: 3, times: 2}]",
        "tables: [{version: ours, earn: {clicked: {points: 4, per_day: 1}}}]\nevents_per_hour: 1",
    ],
)
def test_points_are_previewed_as_they_would_have_been_in_force(asked: Asked, text: str) -> None:
    answer = asked.ask("points_preview", text=text)
    indented = "\n".join(f"  {line}" for line in text.splitlines())
    live = lived(Asked(definitions=f"points:\n{indented}").engine.catalogue)
    earned = [live.ask("points_of", id=f"user_id:u{n}")["earned"] for n in range(PEOPLE)]
    assert answer["points"] == sum(earned)
    assert [each["points"] for each in answer["samples"]] == sorted(earned, reverse=True)[:10]


def test_points_that_are_switched_off_give_nobody_any(asked: Asked) -> None:
    answer = asked.ask("points_preview", text="false")
    assert (answer["points"], answer["earning"]["people"], answer["samples"]) == (0, 0, [])
    assert answer["points_now"] > 0


def test_what_an_operator_gives_is_no_part_of_what_the_tables_give() -> None:
    asked = lived(in_force())
    asked.ask("points_adjust", id="user_id:u1", points=1_000, reason="sorry", request="1")
    answer = asked.ask("points_preview", text="tables: [{version: ours, earn: {clicked: 1}}]")
    assert answer["points"] == sum(len(days_of(n)) for n in range(PEOPLE))


# --- leaderboards ------------------------------------------------------------------------------


@given(st.sampled_from(["features.clicks", "points.earned", "points.balance", "streaks.reading.current"]))
def test_a_board_is_previewed_as_its_first_places_once_in_force(score: str) -> None:
    text = f"score: {score}"
    shown = stored().ask("leaderboards_preview", text=text, name="tried")
    listed = with_board(score).ask("leaderboards_top", name="tried", limit=PLACES)
    assert [(each["rank"], each["score"], user(each)) for each in shown["places"]] == [
        (each["rank"], each["score"], user(each)) for each in listed["places"]
    ]
    assert (shown["exact"], shown["people_read"], shown["period"]) == (True, PEOPLE, "all")


@cache
def with_board(score: str) -> Asked:
    return lived(Asked(definitions=f"{IN_FORCE}  tried: {{score: {score}}}\n").engine.catalogue)


def test_a_board_by_periods_shows_the_longest_of_them(asked: Asked) -> None:
    answer = asked.ask("leaderboards_preview", text="{score: points.earned, periods: [day, month]}")
    live = lived(
        Asked(definitions=f"{IN_FORCE}  tried: {{score: points.earned, periods: [day, month]}}\n").engine.catalogue
    )
    listed = live.ask("leaderboards_top", name="tried", period="month")
    assert answer["period"] == listed["period"] == "2026-01"
    assert [each["score"] for each in answer["places"]] == [each["score"] for each in listed["places"]]


def test_a_board_counts_who_stands_on_it_and_equal_scores_share_a_rank(asked: Asked) -> None:
    answer = asked.ask("leaderboards_preview", text="score: features.clicks")
    assert answer["ranked"]["people"] == sum(bool(days_of(n)) for n in range(PEOPLE)) < PEOPLE
    for before, after in pairwise(answer["places"]):
        assert (before["score"] > after["score"]) or before["rank"] == after["rank"]
    assert [each["name"] for each in asked.ask("leaderboards_list")["boards"]] == ["top_clickers"]


# --- all of them -------------------------------------------------------------------------------

PREVIEWS = {
    "streaks_preview": "events: clicked",
    "points_preview": "tables: [{version: ours, earn: {clicked: 1}}]",
    "leaderboards_preview": "score: features.clicks",
    "features_preview": "{aggregate: count, events: clicked}",
}


@pytest.mark.parametrize("operation", PREVIEWS)
def test_a_preview_of_a_wrong_draft_is_refused_with_its_place(asked: Asked, operation: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"draft\.yaml:1: "):
        asked.ask(operation, text="wen: 1")


@pytest.mark.parametrize(("operation", "text"), PREVIEWS.items())
def test_a_preview_whose_time_is_up_says_so(operation: str, text: str) -> None:
    asked = Asked(catalogue=in_force())
    for n in range(900):
        asked.tell("clicked", user_id=f"u{n}", properties={})
    ticking = iter(range(10**9))
    asked.engine.recorder.clock = lambda: asked.now + next(ticking) * SECOND
    answer = asked.ask(operation, text=text, seconds=1)
    assert not answer["exact"]
    assert 0 < answer["people_read"] < 900
    counted = next(answer[name] for name in ("ever", "earning", "ranked", "valued") if name in answer)
    assert counted["low"] <= 900 <= counted["high"]


@pytest.mark.parametrize(("operation", "text"), PREVIEWS.items())
def test_a_preview_of_nobody_is_empty(operation: str, text: str) -> None:
    answer = Asked(catalogue=in_force()).ask(operation, text=text)
    assert (answer["exact"], answer["people_read"]) == (True, 0)


@pytest.mark.parametrize(("operation", "text"), PREVIEWS.items())
def test_a_preview_writes_nothing(asked: Asked, operation: str, text: str) -> None:
    def shown() -> Any:
        people = [f"user_id:u{n}" for n in range(0, PEOPLE, 7)]
        return [(asked.ask("events_of", id=id, limit=100), asked.ask("points_of", id=id)["balance"]) for id in people]

    before = shown()
    asked.ask(operation, text=text)
    assert shown() == before


def test_a_preview_of_another_workspace_reads_nobody_of_this_one(asked: Asked) -> None:
    for operation, text in PREVIEWS.items():
        assert asked.ask(operation, text=text, workspace="other")["people_read"] == 0


def test_a_streak_without_its_section_in_force_is_refused() -> None:
    with pytest.raises((InvalidDefinition, InvalidValue)):
        Asked(definitions="streaks: {}").ask("streaks_preview", text="times: 0")
