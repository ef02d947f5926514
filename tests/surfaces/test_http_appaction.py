"""Actions over HTTP: what a user's action leaves behind, what is refused, and who may act."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.surfaces.appaction_stage import ACTION, RANKING, USER, VISITOR, as_user, events, settings, ux
from tests.surfaces.conftest import NOW, Clock, Keys
from tests.surfaces.web_tokens import token
from threadline.engine.engine import Engine
from threadline.kernel.limits import EVENT_BYTES_MAX
from threadline.kernel.time import HOUR, SECOND, format_time
from threadline.surfaces.http.server.application import Application

__all__ = ["ux"]


def test_an_action_of_a_user_keeps_every_scope_under_its_one_id(ux: TestClient, engine: Engine, clock: Clock) -> None:
    scopes = [{"topic": "category", "value": "A"}, {"topic": "article", "value": "trail"}, {"topic": "tag"}]
    body = {"topic": "Article", "applicationId": "web", "actionId": "a-1", "scopes": scopes}
    answer = ux.post(USER, json=body, headers=as_user(clock))
    (recorded,) = events(engine, "user_id:42")
    receipt = {"actionId": "a-1", "status": "accepted", "messageId": recorded.event.key}
    assert (answer.status_code, answer.json()) == (200, receipt)
    assert recorded.event.type == "app_action"
    assert recorded.event.properties == {
        "topic": "Article",
        "application_id": "web",
        "action_id": "a-1",
        "scopes": [
            {"topic": "category", "value": "A"},
            {"topic": "article", "value": "trail"},
            {"topic": "tag", "value": ""},
        ],
    }
    assert recorded.event.occurred_at == NOW
    assert recorded.event.wire["appaction"]["ip"] == "testclient"
    ranked = ux.post(RANKING, json={"topic": "Article"}, headers=as_user(clock)).json()
    assert clock.now == NOW  # a clock that stands still hides nothing that is recorded
    assert ranked == ["trail", "A", ""]


@pytest.mark.parametrize("id", ["a-1", "a/1", "a 1%2F", "ü"])
def test_the_receipt_of_an_action_says_what_to_ask_for(id: str, ux: TestClient, clock: Clock, keys: Keys) -> None:
    told = ux.post(USER, json={**ACTION, "actionId": id}, headers=as_user(clock)).json()["messageId"]
    other = ux.post(USER, json={**ACTION, "actionId": id, "topic": "Video"}, headers=as_user(clock)).json()
    assert (other["status"], other["messageId"]) == ("conflict", told)
    answer = ux.get(f"/v1/messages/{quote(told, safe='')}", headers=keys.bearer("read")).json()
    assert (answer["outcome"], answer["event"]["properties"]["topic"]) == ("conflict", "Article")
    assert answer["rejected"][0]["payload"]["properties"]["topic"] == "Video"
    assert ux.get(f"/v1/messages/{quote(id, safe='')}", headers=keys.bearer("read")).status_code == 404


def test_fields_count_without_regard_to_case(ux: TestClient, engine: Engine, clock: Clock) -> None:
    body = {
        "Topic": "Article",
        "ApplicationId": "web",
        "Scopes": [{"ScopeTopic": "category", "ScopeValue": 12}],
        "ActionId": "a-1",
        "Unknown": [1],
        "Utm": None,
    }
    assert ux.post(USER, json=body, headers=as_user(clock)).status_code == 200
    assert events(engine, "user_id:42")[0].event.properties["scopes"] == [{"topic": "category", "value": "12"}]


def test_an_action_without_an_id_is_given_one(ux: TestClient, clock: Clock) -> None:
    ids = {ux.post(USER, json=ACTION, headers=as_user(clock)).json()["actionId"] for _ in range(3)}
    assert len(ids) == 3
    assert all(ids)


def test_a_retry_changes_nothing_and_another_action_of_the_same_id_is_told(
    ux: TestClient, engine: Engine, clock: Clock
) -> None:
    def send(body: dict[str, Any], id: str = "42") -> str:
        clock.now += SECOND
        answer = ux.post(USER, json={**body, "actionId": "a-1"}, headers=as_user(clock, id))
        status: str = answer.json()["status"]
        return status

    assert [send(ACTION), send(ACTION), send({**ACTION, "topic": "Course"})] == ["accepted", "duplicate", "conflict"]
    assert send(ACTION, "43") == "accepted", "the ids of one user are no other's"
    assert len(events(engine, "user_id:42")) == 1


@pytest.mark.parametrize("first", [None, "ana@example.com", "Ana@Example.com"])
@pytest.mark.parametrize("then", [None, "ana@example.com", "other@example.com"])
def test_a_retry_with_a_token_of_another_address_is_a_retry(
    ux: TestClient, engine: Engine, clock: Clock, first: str | None, then: str | None
) -> None:
    def send(email: str | None, topic: str = "Article") -> str:
        claims = {} if email is None else {"email": email, "email_verified": True}
        body = {**ACTION, "topic": topic, "actionId": "a-1", "anonymousId": "device-1"}
        status: str = ux.post(USER, json=body, headers=as_user(clock, **claims)).json()["status"]
        return status

    assert [send(first), send(then), send(then, "Course")] == ["accepted", "duplicate", "conflict"]
    kinds = {each.kind for each in engine.reader.person("default", "user_id:42").identifiers.values()}
    assert kinds == {"user_id", "anonymous_id", *(["email"] if first else [])}


def test_a_retry_from_another_network_is_a_retry(engine: Engine, clock: Clock) -> None:
    statuses = []
    for address in ("192.0.2.1", "192.0.2.2"):
        client = TestClient(Application(engine, settings()), client=(address, 1))
        answer = client.post(USER, json={**ACTION, "actionId": "a-1"}, headers=as_user(clock))
        statuses.append(answer.json()["status"])
    assert statuses == ["accepted", "duplicate"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topic": None}, "topic"),
        ({"topic": ""}, "topic"),
        ({"topic": "  "}, "blank"),
        ({"topic": "x" * 51}, "topic"),
        ({"topic": 3}, "topic"),
        ({"topic": "a\x1fb"}, "U+001F"),
        ({"applicationId": "x" * 51}, "applicationId"),
        ({"actionId": "x" * 65}, "actionId"),
        ({"anonymousId": "x" * 101}, "anonymousId"),
        ({"scopes": {}}, "scopes"),
        ({"scopes": ["A"]}, "scopes"),
        ({"scopes": [{"topic": "x" * 51}]}, "scopes"),
        ({"scopes": [{"value": "x" * 51}]}, "scopes"),
        ({"scopes": [{"value": [1]}]}, "scopes"),
        ({"occurredAt": "soon"}, "not a time"),
        ({"utm": {"source": 1}}, "utm"),
    ],
)
def test_a_body_that_is_wrong_is_refused_with_the_field(
    ux: TestClient, clock: Clock, change: dict[str, Any], message: str
) -> None:
    answer = ux.post(USER, json={**ACTION, **change}, headers=as_user(clock))
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff", b"[" * 100])
def test_what_is_no_object_is_refused(ux: TestClient, clock: Clock, body: bytes) -> None:
    for path in (USER, VISITOR, RANKING):
        assert ux.post(path, content=body, headers=as_user(clock)).status_code == 400


def test_lengths_up_to_the_limits_are_taken(ux: TestClient, clock: Clock) -> None:
    scopes = [{"topic": "é" * 50, "value": "é" * 50}]
    body = {"topic": "é" * 50, "applicationId": "é" * 50, "actionId": "x" * 64, "scopes": scopes}
    assert ux.post(USER, json=body, headers=as_user(clock, "u" * 100)).status_code == 200
    clock.now += 1
    assert ux.post(RANKING, json={"topic": "é" * 50}, headers=as_user(clock, "u" * 100)).json() == ["é" * 50]
    assert ux.post(USER, json=ACTION, headers=as_user(clock, "u" * 101)).status_code == 400
    large = {**ACTION, "scopes": [{"value": "x" * 50}] * (EVENT_BYTES_MAX // 50)}
    assert ux.post(USER, json=large, headers=as_user(clock)).status_code == 413


def test_a_time_may_be_told(ux: TestClient, engine: Engine, clock: Clock) -> None:
    for hours, expected in ((-2, NOW - 2 * HOUR), (2, NOW + 2 * HOUR), (49, NOW)):
        body = {**ACTION, "actionId": str(hours), "occurredAt": format_time(NOW + hours * HOUR)}
        assert ux.post(USER, json=body, headers=as_user(clock)).status_code == 200
        found = {each.event.properties["action_id"]: each.event for each in events(engine, "user_id:42")}
        assert found[str(hours)].occurred_at == expected
    assert found["49"].marks == ("clamped",)


# --- who acts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [USER, RANKING])
def test_a_user_needs_a_good_token(ux: TestClient, keys: Keys, clock: Clock, path: str) -> None:
    for headers in (
        {},
        {"Authorization": "Basic NDI6"},
        {"Authorization": "Bearer "},
        keys.bearer("admin"),
        keys.bearer("write"),
        {"Authorization": f"Bearer {token({'sub': '42', 'exp': clock.now // SECOND})}"},
    ):
        answer = ux.post(path, json=ACTION, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", [USER, RANKING])
def test_a_user_comes_with_one_token(ux: TestClient, clock: Clock, path: str) -> None:
    both = [*as_user(clock).items(), *as_user(clock, "43").items()]
    assert ux.post(path, json=ACTION, headers=both).status_code == 401


def test_a_user_token_opens_nothing_else(ux: TestClient, clock: Clock) -> None:
    assert ux.get("/v1/people", headers=as_user(clock)).status_code == 401
    message = {"userId": "42", "event": "click", "messageId": "1"}
    assert ux.post("/v1/track", json=message, headers=as_user(clock)).status_code == 401


def test_without_keys_no_token_is_taken(client: TestClient, clock: Clock) -> None:
    answer = client.post(USER, json=ACTION, headers=as_user(clock))
    assert answer.status_code == 401
    assert "jwt_secret" in answer.json()["hint"]


def test_what_a_visitor_did_is_the_users_once_they_sign_in(ux: TestClient, engine: Engine, clock: Clock) -> None:
    visit = {**ACTION, "anonymousId": "device-1", "utm": {"source": "newsletter", "campaign": "spring"}}
    assert ux.post(VISITOR, json=visit).status_code == 200
    later = {**ACTION, "scopes": [{"topic": "utm_source", "value": "search"}, {"topic": "utm_medium", "value": "cpc"}]}
    clock.now += HOUR
    body = {**later, "anonymousId": "device-1"}
    assert ux.post(USER, json=body, headers=as_user(clock)).status_code == 200
    clock.now += 1
    person = engine.reader.person("default", "user_id:42")
    assert {str(each) for each in person.identifiers.values()} == {"user_id:42", "anonymous_id:device-1"}
    assert ux.post(RANKING, json={"topic": "Article", "scopeTopic": "category"}, headers=as_user(clock)).json() == ["A"]
    views = engine.reader.views(person, clock.now, names=["attribution"])["attribution"]
    assert (views["first_touch"]["source"], views["first_touch"]["name"]) == ("newsletter", "spring")
    assert (views["last_touch"]["source"], views["last_touch"]["medium"]) == ("search", "cpc")
    engine.identity.split("default", person.id, ["anonymous_id:device-1"], request="r1")
    back = engine.reader.views(engine.reader.person("default", "user_id:42"), clock.now, names=["attribution"])[
        "attribution"
    ]
    assert back["first_touch"]["source"] == "search"


def test_a_verified_address_names_the_user_too(ux: TestClient, engine: Engine, clock: Clock) -> None:
    headers = as_user(clock, email="Ana@Example.com", email_verified=True)
    assert ux.post(USER, json=ACTION, headers=headers).status_code == 200
    assert (
        engine.reader.person("default", "email:ana@example.com").id == engine.reader.person("default", "user_id:42").id
    )


def test_a_token_that_names_nobody_records_nothing(ux: TestClient, clock: Clock) -> None:
    answer = ux.post(USER, json=ACTION, headers=as_user(clock, "null"))
    assert answer.status_code == 400
    assert answer.json()["code"] == "no_identifier"
