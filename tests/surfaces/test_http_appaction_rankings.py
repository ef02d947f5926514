"""Rankings of topics over HTTP, and from where browsers may ask."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.capabilities.test_interests_worked import table
from tests.surfaces.appaction_stage import RANKING, USER, VISITOR, as_user, ux
from tests.surfaces.conftest import NOW, Clock, Keys
from threadline.kernel.time import DAY, HOUR

__all__ = ["ux"]


def test_a_user_of_whom_nothing_is_known_has_no_interests(ux: TestClient, clock: Clock) -> None:
    answer = ux.post(RANKING, json={"topic": "Article", "scopeTopic": "category"}, headers=as_user(clock))
    assert (answer.status_code, answer.json()) == (200, [])
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("body", [{}, {"topic": ""}, {"topic": "x" * 51}, {"topic": "A", "limit": 0}])
def test_a_question_that_is_wrong_is_refused(ux: TestClient, clock: Clock, body: dict[str, Any]) -> None:
    assert ux.post(RANKING, json=body, headers=as_user(clock)).status_code == 400


def test_a_question_may_name_scope_and_application(ux: TestClient, clock: Clock) -> None:
    for number, (value, application) in enumerate([("A", "web"), ("B", "app"), ("B", "app"), ("C", "")]):
        scopes = [{"topic": "category", "value": value}, {"topic": "author", "value": "ana"}]
        body = {"topic": "Article", "applicationId": application, "scopes": scopes, "actionId": str(number)}
        ux.post(USER, json=body, headers=as_user(clock))
    clock.now += 1

    def ask(**more: Any) -> Any:
        return ux.post(RANKING, json={"topic": "Article", **more}, headers=as_user(clock)).json()

    assert ask() == ["ana", "B", "A", "C"]
    assert ask(scopeTopic="category") == ["B", "A", "C"]
    assert ask(scopeTopic="category", applicationId="web") == ["A"]
    assert ask(scopeTopic="category", limit=1) == ask(scopeTopic="category", limit=1.0) == ["B"]
    assert ask(scopeTopic="nothing") == []
    assert ask(scopeTopic="category", includeWeights=True)[0] == {
        "scopeTopic": "category",
        "value": "B",
        "weight": 2.0,
        "current": 2,
        "previous": 0,
    }


def test_the_published_table_over_http(ux: TestClient, clock: Clock, keys: Keys) -> None:
    """Actions sent as they happen, a clock that is moved, and the weights asked for on each day of the table."""
    sent = {"A": 0, "B": 0}

    def act(value: str, count: int) -> None:
        while sent[value] < count:
            sent[value] += 1
            body = {"topic": "Article", "applicationId": "web", "scopes": [{"topic": "category", "value": value}]}
            assert ux.post(USER, json=body, headers=as_user(clock)).json()["status"] == "accepted"

    act("A", 30)
    act("B", 10)
    clock.now += 20 * DAY
    act("A", 45)
    begins = NOW - NOW % DAY + 30 * DAY
    for day, weight, now_a, weight_a, now_b, weight_b, leader in table("An interest that shifts"):
        clock.now = begins + (int(day) - 1) * DAY + 8 * HOUR
        act("A", 45 + int(now_a))
        act("B", 10 + int(now_b))
        clock.now += HOUR
        question = {"topic": "Article", "scopeTopic": "category"}
        ranked = ux.post(RANKING, json=question, headers=as_user(clock)).json()
        assert ranked == sorted("AB", reverse=leader == "B")
        told = ux.post(RANKING, json={**question, "includeWeights": True}, headers=as_user(clock)).json()
        assert {each["value"]: f"{each['weight']:.2f}" for each in told} == {"A": weight_a, "B": weight_b}
        assert {each["value"]: (each["current"], each["previous"]) for each in told} == {
            "A": (int(now_a), 45),
            "B": (int(now_b), 10),
        }
        path = "/v1/people/user_id:42/interests"
        topic = ux.get(path, params={"topic": "Article"}, headers=keys.bearer("read")).json()["topics"][0]
        assert f"{topic['previous_weight']:.2f}" == weight
        assert {each["value"]: f"{each['weight']:.2f}" for each in topic["values"]} == {"A": weight_a, "B": weight_b}


def test_browsers_of_any_origin_may_send(ux: TestClient) -> None:
    for path in (USER, VISITOR, RANKING):
        answer = ux.options(path, headers={"Origin": "https://app.example"})
        assert answer.status_code == 204
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert ux.post(path, json={}).headers["access-control-allow-origin"] == "*"
