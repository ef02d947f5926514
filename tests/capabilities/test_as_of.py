"""Reads of the past: every projection answers for an instant as it would have answered then."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import DAY, format_time


@pytest.fixture
def asked() -> Asked:
    made = Asked()
    for day in range(6):
        made.now = STARTS_AT + day * DAY
        made.tell("tool_used", user_id="ada")
        made.tell("identify", user_id="ada", properties={"plan": f"plan-{day}"})
        made.tell("tag_added", user_id="ada", properties={"tag": f"tag-{day}"})
        made.tell("purchase_completed", user_id="ada", properties={"total": day, "currency": "EUR"})
    return made


def seen(asked: Asked, **params: Any) -> dict[str, Any]:
    """A person without what says when they were looked at."""
    answer: dict[str, Any] = asked.ask("person", id="user_id:ada", **params)
    for name in ("position", "as_of", "timers"):
        del answer[name]
    return answer


def test_a_person_of_the_past_is_what_was_answered_then() -> None:
    asked = Asked()
    answers = []
    for day in range(5):
        asked.now = STARTS_AT + day * DAY
        asked.tell("tool_used", user_id="ada")
        asked.tell("identify", user_id="ada", properties={"plan": f"plan-{day}"})
        asked.tell("purchase_completed", user_id="ada", properties={"total": day, "currency": "EUR"})
        answers.append((asked.now + 1, seen(asked), asked.ask("points_of", id="user_id:ada")["balance"]))
    asked.now = STARTS_AT + 60 * DAY
    for at, then, balance in answers:
        assert seen(asked, as_of=format_time(at)) == then
        assert asked.ask("points_of", id="user_id:ada", as_of=format_time(at))["balance"] == balance


def test_what_was_told_late_was_not_known_then(asked: Asked) -> None:
    at = asked.now + 1
    before = seen(asked, as_of=format_time(at)) if asked.now >= at else seen(asked)
    points = asked.ask("points_of", id="user_id:ada")
    late = STARTS_AT + 2 * DAY + 5
    asked.now = STARTS_AT + 6 * DAY
    asked.tell("tool_used", at=late, user_id="ada")
    asked.tell("tag_added", at=late, user_id="ada", properties={"tag": "late"})
    assert seen(asked, as_of=format_time(at)) == before
    assert asked.ask("points_of", id="user_id:ada", as_of=format_time(at))["earned"] == points["earned"]
    assert "late" in asked.ask("person", id="user_id:ada")["tags"]


def test_a_timeline_of_the_past_ends_there(asked: Asked) -> None:
    answer = asked.ask("person", id="user_id:ada", as_of=format_time(STARTS_AT + 3 * DAY), timeline=3)
    assert [each["occurred_at"][:10] for each in answer["timeline"]["events"]] == ["2026-01-03"] * 3
    assert answer["traits"] == {"plan": "plan-2"}


def test_a_timeline_of_the_past_holds_what_lay_ahead_then(asked: Asked) -> None:
    asked.tell("page", at=asked.now + DAY // 2, user_id="ada")
    told = asked.now + 1
    now = asked.ask("person", id="user_id:ada", timeline=2)["timeline"]
    asked.now += DAY
    asked.tell("page", user_id="ada")
    assert now["events"][0]["type"] == "page"
    assert asked.ask("person", id="user_id:ada", timeline=2, as_of=format_time(told))["timeline"] == now


def test_what_is_known_now_may_be_asked_of_every_view(asked: Asked) -> None:
    asked.now = STARTS_AT + 2 * DAY + 5
    at = format_time(asked.now)
    late = {"topic": "trails", "scopes": []}
    asked.now = STARTS_AT + 6 * DAY
    asked.tell("app_action", at=STARTS_AT + DAY, user_id="ada", properties=late)
    asked.tell("tool_used", at=STARTS_AT - DAY, user_id="ada")
    longest = {
        known: asked.ask("streaks_of", id="user_id:ada", as_of=at, known=known)["streaks"]["daily"]["longest"]
        for known in ("then", "now")
    }
    assert longest == {"then": 3, "now": 4}
    topics = {
        known: [each["topic"] for each in asked.ask("interests_of", id="user_id:ada", as_of=at, known=known)["topics"]]
        for known in ("then", "now")
    }
    assert topics == {"then": [], "now": ["trails"]}


@pytest.mark.parametrize(
    "operation", ["person", "points_of", "features_of", "memory_of", "streaks_of", "segments_of", "interests_of"]
)
def test_the_future_cannot_be_asked(asked: Asked, operation: str) -> None:
    with pytest.raises(InvalidValue, match="in the future"):
        asked.ask(operation, id="user_id:ada", as_of="2099-01-01T00:00:00Z")
