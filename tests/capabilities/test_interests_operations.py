"""Interests as callers read them: rankings now and as of, summaries from the log, first and last touch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import DAY, HOUR, format_time


@pytest.fixture
def asked() -> Asked:
    return Asked()


def act(asked: Asked, value: str, at: int, application: str = "", topic: str = "Article", **who: str) -> None:
    properties = {"topic": topic, "scopes": [{"topic": "category", "value": value}], "application_id": application}
    assert asked.tell("app_action", at, properties=properties, **(who or {"user_id": "42"}))["status"] == "accepted"


def values(answer: dict[str, Any], topic: str = "Article") -> dict[str, float]:
    found = {each["topic"]: each["values"] for each in answer["topics"]}
    return {each["value"]: each["weight"] for each in found.get(topic, [])}


def test_a_ranking_holds_for_the_instant_that_is_asked_for(asked: Asked) -> None:
    asked.now = STARTS_AT + 40 * DAY
    for day in (0, 1, 39):
        act(asked, f"day {day}", STARTS_AT + day * DAY)
    assert values(asked.ask("interests_of", id="user_id:42")) == {"day 39": 1.0, "day 0": 0.63, "day 1": 0.63}
    early = asked.ask("interests_of", id="user_id:42", as_of=format_time(STARTS_AT + DAY), known="now")
    assert values(early) == {"day 0": 1.0}, "only what lies before an instant counts at it"
    assert early["as_of"] == format_time(STARTS_AT + DAY)
    assert values(asked.ask("interests_of", id="user_id:42", as_of=format_time(STARTS_AT), known="now")) == {}
    assert values(asked.ask("interests_of", id="user_id:42", as_of=format_time(STARTS_AT + DAY))) == {}, (
        "not known then"
    )
    with pytest.raises(InvalidValue, match="is in the future"):
        asked.ask("interests_of", id="user_id:42", as_of=format_time(asked.now + DAY))


def test_any_formula_may_be_asked_for(asked: Asked) -> None:
    asked.now = STARTS_AT + 10 * DAY
    act(asked, "A", STARTS_AT)
    act(asked, "B", STARTS_AT + 10 * DAY - HOUR)
    (topic,) = asked.ask("interests_of", id="user_id:42", half_life="5d")["topics"]
    assert (topic["mode"], topic["half_life"]) == ("decay", "5d")
    assert [(each["value"], each["weight"]) for each in topic["values"]] == [("B", 0.870551), ("A", 0.25)]
    assert values(asked.ask("interests_of", id="user_id:42", mode="decay"))["A"] == 0.793701
    with pytest.raises(InvalidValue, match="belongs to mode decay"):
        asked.ask("interests_of", id="user_id:42", half_life="5d", mode="periods")
    for wrong in ("5", "11y", ""):
        with pytest.raises(InvalidValue):
            asked.ask("interests_of", id="user_id:42", half_life=wrong)


def test_topic_scope_application_and_limit_choose(asked: Asked) -> None:
    asked.now = STARTS_AT + DAY
    for number, (value, application) in enumerate([("A", "web"), ("A", "app"), ("B", "app"), ("C", "")]):
        act(asked, value, STARTS_AT + number, application)
    act(asked, "A", STARTS_AT + 9, topic="Course")
    assert values(asked.ask("interests_of", id="user_id:42", application="app")) == {"A": 1.0, "B": 1.0}
    assert values(asked.ask("interests_of", id="user_id:42", application="")) == {"C": 1.0}
    assert values(asked.ask("interests_of", id="user_id:42", limit=1)) == {"A": 2.0}
    assert [each["topic"] for each in asked.ask("interests_of", id="user_id:42")["topics"]] == ["Article", "Course"]
    assert [each["topic"] for each in asked.ask("interests_of", id="user_id:42", topic="Course")["topics"]] == [
        "Course"
    ]
    assert asked.ask("interests_of", id="user_id:42", scope="author")["topics"] == []
    with pytest.raises(NotFound):
        asked.ask("interests_of", id="user_id:nobody")


def test_a_summary_goes_back_to_the_first_action(asked: Asked) -> None:
    asked.now = STARTS_AT + 1_000 * DAY
    for day in range(0, 1_000, 10):
        act(asked, "A", STARTS_AT + day * DAY + HOUR, "web")
    rows = asked.ask("interests_summary", id="user_id:42")["rows"]
    assert len(rows) == 34
    assert sum(row["total"] for row in rows) == 100
    assert rows[-1] == {
        "topic": "Article",
        "application": "web",
        "scope": "category",
        "value": "A",
        "total": 3,
        "period_starts_at": format_time(STARTS_AT),
        "period_ends_at": format_time(STARTS_AT + 30 * DAY),
        "first_at": format_time(STARTS_AT + HOUR),
        "last_at": format_time(STARTS_AT + 20 * DAY + HOUR),
    }
    short = asked.ask("interests_summary", id="user_id:42", limit=2)
    assert (short["rows"], short["more"]) == (rows[:2], True)
    since = asked.ask("interests_summary", id="user_id:42", start=format_time(STARTS_AT + 990 * DAY))["rows"]
    assert [row["total"] for row in since] == [1]
    until = asked.ask("interests_summary", id="user_id:42", stop=format_time(STARTS_AT + 15 * DAY))["rows"]
    assert [row["total"] for row in until] == [2]
    assert asked.ask("interests_summary", id="user_id:42", application="app")["rows"] == []
    assert asked.ask("interests_summary", id="user_id:42", topic="Course")["rows"] == []


def test_a_person_shows_interests_and_where_they_came_from(asked: Asked) -> None:
    asked.now = STARTS_AT + DAY
    context = {"campaign": {"source": "mail", "medium": "email", "name": "spring", "other": 1}}
    asked.tell("page", STARTS_AT, context=context, anonymous_id="d1")
    asked.tell(
        "page",
        STARTS_AT + 2,
        properties={"url": "https://x.example/?utm_source=ads&utm_campaign=may#a"},
        anonymous_id="d1",
    )
    act(asked, "A", STARTS_AT + 1, anonymous_id="d1", user_id="42")
    views = asked.ask("person", id="user_id:42")["views"]
    assert views["interests"]["Article"]["top"] == "A"
    assert views["interests"]["Article"]["scopes"]["category"]["A"]["weight"] == 1.0
    touches = asked.ask("interests_attribution", id="user_id:42")
    assert touches["first_touch"] == {
        "at": format_time(STARTS_AT),
        "event": touches["first_touch"]["event"],
        "source": "mail",
        "medium": "email",
        "name": "spring",
    }
    assert (touches["last_touch"]["source"], touches["last_touch"]["name"]) == ("ads", "may")


def test_somebody_without_a_campaign_came_from_nowhere(asked: Asked) -> None:
    act(asked, "A", STARTS_AT)
    touches = asked.ask("interests_attribution", id="user_id:42")
    assert (touches["first_touch"], touches["last_touch"]) == (None, None)


def test_a_late_visit_is_the_first_touch(asked: Asked) -> None:
    asked.now = STARTS_AT + 9 * DAY
    for day, source in ((5, "b"), (2, "a"), (8, "c"), (3, "d")):
        asked.tell("page", STARTS_AT + day * DAY, context={"campaign": {"source": source}}, user_id="42")
    touches = asked.ask("interests_attribution", id="user_id:42")
    assert (touches["first_touch"]["source"], touches["last_touch"]["source"]) == ("a", "c")
