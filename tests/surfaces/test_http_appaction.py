"""The addresses for actions: bodies, identity, limits, rankings, and the published table over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.capabilities.test_interests_worked import table
from tests.surfaces.conftest import NOW, Clock, Keys, client_of
from tests.surfaces.web_tokens import SECRET, token
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.limits import EVENT_BYTES_MAX
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time
from threadline.settings import Settings
from threadline.surfaces.http.appaction_window import NAMES_MAX, Window
from threadline.surfaces.http.application import Application
from threadline.surfaces.http.client_address import ClientAddress, limited_name

USER, VISITOR, RANKING = "/ux/user/appaction", "/ux/appaction", "/ux/user/actions/gettopicvaluefrequency"
ACTION = {"topic": "Article", "applicationId": "web", "scopes": [{"topic": "category", "value": "A"}]}


def settings(**more: Any) -> Settings:
    return Settings(access_log=False, jwt_secret=SECRET, **more)


@pytest.fixture
def ux(engine: Engine) -> Iterator[TestClient]:
    with client_of(engine, settings()) as made:
        yield made


def as_user(clock: Clock, id: str = "42", **claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token({'sub': id, 'exp': clock.now // SECOND + 60, **claims})}"}


def events(engine: Engine, person: str) -> list[Any]:
    return engine.events(engine.person("default", person), limit=100)


# --- actions ------------------------------------------------------------------------------------


def test_an_action_of_a_user_keeps_every_scope_under_its_one_id(ux: TestClient, engine: Engine, clock: Clock) -> None:
    scopes = [{"topic": "category", "value": "A"}, {"topic": "article", "value": "trail"}, {"topic": "tag"}]
    body = {"topic": "Article", "applicationId": "web", "actionId": "a-1", "scopes": scopes}
    answer = ux.post(USER, json=body, headers=as_user(clock))
    (recorded,) = events(engine, "user_id:42")
    receipt = {"actionId": "a-1", "status": "accepted", "messageId": recorded.event.key}
    assert (answer.status_code, answer.json()) == (200, receipt)
    assert recorded.event.type == "app_action"
    assert recorded.event.properties == {
        "topic": "Article", "application_id": "web", "action_id": "a-1",
        "scopes": [{"topic": "category", "value": "A"}, {"topic": "article", "value": "trail"},
                   {"topic": "tag", "value": ""}],
    }  # fmt: skip
    assert recorded.event.occurred_at == NOW
    assert recorded.event.wire["appaction"]["ip"] == "testclient"
    ranked = ux.post(RANKING, json={"topic": "Article"}, headers=as_user(clock)).json()
    assert ranked == []  # it happened at this instant, and only what lies before an instant counts at it
    clock.now += 1
    ranked = ux.post(RANKING, json={"topic": "Article"}, headers=as_user(clock)).json()
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
    body = {"Topic": "Article", "ApplicationId": "web", "Scopes": [{"ScopeTopic": "category", "ScopeValue": 12}],
            "ActionId": "a-1", "Unknown": [1], "Utm": None}  # fmt: skip
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
    kinds = {each.kind for each in engine.person("default", "user_id:42").identifiers.values()}
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
        {}, {"Authorization": "Basic NDI6"}, {"Authorization": "Bearer "}, keys.bearer("admin"), keys.bearer("write"),
        {"Authorization": f"Bearer {token({'sub': '42', 'exp': clock.now // SECOND})}"},
    ):  # fmt: skip
        answer = ux.post(path, json=ACTION, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


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
    person = engine.person("default", "user_id:42")
    assert {str(each) for each in person.identifiers.values()} == {"user_id:42", "anonymous_id:device-1"}
    assert ux.post(RANKING, json={"topic": "Article", "scopeTopic": "category"}, headers=as_user(clock)).json() == ["A"]
    views = engine.views(person, clock.now, names=["attribution"])["attribution"]
    assert (views["first_touch"]["source"], views["first_touch"]["name"]) == ("newsletter", "spring")
    assert (views["last_touch"]["source"], views["last_touch"]["medium"]) == ("search", "cpc")
    engine.split("default", person.id, ["anonymous_id:device-1"], request="r1")
    back = engine.views(engine.person("default", "user_id:42"), clock.now, names=["attribution"])["attribution"]
    assert back["first_touch"]["source"] == "search"


def test_a_verified_address_names_the_user_too(ux: TestClient, engine: Engine, clock: Clock) -> None:
    headers = as_user(clock, email="Ana@Example.com", email_verified=True)
    assert ux.post(USER, json=ACTION, headers=headers).status_code == 200
    assert engine.person("default", "email:ana@example.com").id == engine.person("default", "user_id:42").id


def test_a_token_that_names_nobody_records_nothing(ux: TestClient, clock: Clock) -> None:
    answer = ux.post(USER, json=ACTION, headers=as_user(clock, "null"))
    assert answer.status_code == 400
    assert "no_identifier" in answer.json()["detail"]


# --- visitors -----------------------------------------------------------------------------------


def of(engine: Engine, address: str, **more: Any) -> TestClient:
    return TestClient(Application(engine, settings(**more)), client=(address, 1))


def test_a_visitor_needs_an_application_and_is_known_by_the_address(engine: Engine) -> None:
    client = of(engine, "192.0.2.1")
    without = {name: value for name, value in ACTION.items() if name != "applicationId"}
    answer = client.post(VISITOR, json=without)
    assert (answer.status_code, "applicationId" in answer.json()["detail"]) == (400, True)
    assert client.post(VISITOR, json=ACTION).json()["status"] == "accepted"
    assert len(events(engine, "ip_address:192.0.2.1")) == 1


def test_a_device_is_who_it_says_and_not_its_address(engine: Engine) -> None:
    client = of(engine, "192.0.2.1")
    for device in ("device-1", "device-2"):
        client.post(VISITOR, json={**ACTION, "anonymousId": device})
    ids = {engine.person("default", f"anonymous_id:{device}").id for device in ("device-1", "device-2")}
    assert len(ids) == 2, "two devices behind one address are two visitors"


@pytest.mark.parametrize(("declared", "status"), [("*", 200), ("web", 200), ("app, web", 200), ("app", 403), ("", 403)])
def test_applications_may_be_listed(engine: Engine, declared: str, status: int) -> None:
    client = of(engine, "192.0.2.1", anonymous_applications=declared)
    assert client.post(VISITOR, json=ACTION).status_code == status


def test_five_a_minute_in_any_minute(engine: Engine, clock: Clock) -> None:
    client = of(engine, "192.0.2.1")
    statuses = []
    for second in (0, 10, 20, 30, 40, 50, 59, 60, 61, 69, 70, 71):
        clock.now = NOW + second * SECOND
        statuses.append((second, client.post(VISITOR, json=ACTION).status_code))
    assert [second for second, status in statuses if status == 429] == [50, 59, 61, 69, 71]
    answer = client.post(VISITOR, json=ACTION)
    assert answer.headers["retry-after"] == "9"  # the action of second 20 leaves the minute at second 80
    assert client.post(USER, json=ACTION, headers=as_user(clock)).status_code == 200, "users are not limited by it"
    assert of(engine, "192.0.2.2").post(VISITOR, json=ACTION).status_code == 200


def test_a_retry_costs_nothing(engine: Engine) -> None:
    client = of(engine, "192.0.2.1")
    for number in range(5):
        for expected in ("accepted", "duplicate", "duplicate"):
            assert client.post(VISITOR, json={**ACTION, "actionId": str(number)}).json()["status"] == expected
    assert client.post(VISITOR, json={**ACTION, "actionId": "5"}).status_code == 429
    assert client.post(VISITOR, json={**ACTION, "actionId": "4"}).json()["status"] == "duplicate"


def test_another_action_under_the_same_id_costs_what_an_action_costs(engine: Engine, keys: Keys) -> None:
    client = of(engine, "192.0.2.1")
    assert client.post(VISITOR, json={**ACTION, "actionId": "1"}).json()["status"] == "accepted"
    others = [{**ACTION, "actionId": "1", "scopes": [{"topic": "category", "value": str(n)}]} for n in range(9)]
    answers = [client.post(VISITOR, json=other) for other in others]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429] * 5
    assert answers[0].json()["status"] == "conflict"
    kept = client.get("/v1/rejected", headers=keys.bearer("read")).json()["entries"]
    assert len(kept) == 4
    assert client.post(VISITOR, json={**ACTION, "actionId": "1"}).json()["status"] == "duplicate"


def test_a_body_that_is_refused_costs_nothing(engine: Engine) -> None:
    client = of(engine, "192.0.2.1")
    for _ in range(9):
        assert client.post(VISITOR, json={**ACTION, "topic": ""}).status_code == 400
    assert client.post(VISITOR, json=ACTION).status_code == 200


def test_limits_may_be_counted_by_all_processes_together(engine: Engine) -> None:
    class Shared:
        def __init__(self) -> None:
            self.asked: list[tuple[Any, int]] = []
            self.answer: float | None = 0.0

        def take(self, limits: Any, events: int) -> float | None:
            self.asked.append((limits, events))
            return self.answer

    shared = Shared()
    client = TestClient(Application(engine, settings(), limits=shared), client=("2001:db8::7", 1))
    assert client.post(VISITOR, json=ACTION).status_code == 200
    assert shared.asked == [([("action:2001:db8::/64", 5 / 60, 5)], 1)]
    shared.answer = 12.5
    assert client.post(VISITOR, json=ACTION).headers["retry-after"] == "13"
    shared.answer = None
    assert [client.post(VISITOR, json=ACTION).status_code for _ in range(5)] == [200] * 4 + [429]


def test_a_window_is_bounded_and_survives_a_clock_set_back() -> None:
    now = [0]
    window = Window(2, lambda: now[0])
    now[0] = 10 * MINUTE
    for _ in range(2):
        window.charge("a")
    assert window.wait("a") == 60
    now[0] = 5 * MINUTE
    assert window.wait("a") == 0, "what lies ahead was counted by a clock that was wrong"
    for number in range(NAMES_MAX + 10):
        window.charge(f"n{number}")
    assert len(window._times) == NAMES_MAX
    assert Window(0, lambda: 0).wait("a") == 0


# --- proxies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trusted", "peer", "told", "expected"),
    [
        ("", "192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("127.0.0.1", "192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1", ["203.0.113.9"], "203.0.113.9"),
        ("192.0.2.1", "192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.0/24", "192.0.2.1", ["203.0.113.9, 192.0.2.7"], "203.0.113.9"),
        ("192.0.2.0/24", "192.0.2.1", ["6.6.6.6, 203.0.113.9"], "203.0.113.9"),
        ("192.0.2.0/24", "192.0.2.1", ["6.6.6.6", "203.0.113.9"], "203.0.113.9"),
        ("192.0.2.0/24", "192.0.2.1", ["192.0.2.8, 192.0.2.7"], "192.0.2.8"),
        ("192.0.2.0/24", "192.0.2.1", ["203.0.113.9, unknown"], "192.0.2.1"),
        ("192.0.2.0/24", "192.0.2.1", ["203.0.113.9, 192.0.2.5, nonsense, 192.0.2.7"], "192.0.2.7"),
        ("192.0.2.0/24", "::ffff:192.0.2.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("2001:db8::/32", "2001:db8::1", ["[2001:db9::5]:4711"], "2001:db9::5"),
        ("10.0.0.0/8, 2001:db8::/32", "2001:db8::1", ["203.0.113.9, 10.1.2.3"], "203.0.113.9"),
        ("*", "203.0.113.1", ["6.6.6.6, 7.7.7.7"], "6.6.6.6"),
        ("*", "", ["6.6.6.6"], "6.6.6.6"),
        ("192.0.2.0/24", "testclient", ["6.6.6.6"], "testclient"),
    ],
)
def test_only_trusted_proxies_are_believed(trusted: str, peer: str, told: list[str], expected: str) -> None:
    headers = [(b"host", b"x"), *((b"x-forwarded-for", each.encode()) for each in told)]
    scope = {"client": (peer, 1), "headers": headers}
    assert ClientAddress(trusted).resolve(scope) == expected


@pytest.mark.parametrize("wrong", ["10.0.0.1/8", "proxy.example", "10.0.0.0/33", "::1,nonsense"])
def test_a_proxy_that_is_no_address_is_refused_at_the_start(engine: Engine, wrong: str) -> None:
    with pytest.raises(InvalidSetting, match="forwarded_allow_ips"):
        Application(engine, Settings(forwarded_allow_ips=wrong))


def test_limits_count_by_the_client_behind_the_proxy(engine: Engine) -> None:
    def send(client: TestClient, told: str) -> int:
        return client.post(VISITOR, json=ACTION, headers={"X-Forwarded-For": told}).status_code

    behind = of(engine, "10.0.0.1", forwarded_allow_ips="10.0.0.0/8")
    assert [send(behind, f"{n}.0.0.1, 203.0.113.1") for n in range(1, 7)] == [200] * 5 + [429]
    assert send(behind, "203.0.113.2") == 200
    forger = of(engine, "198.51.100.1", forwarded_allow_ips="10.0.0.0/8")
    assert [send(forger, f"203.0.113.{n}") for n in range(6)] == [200] * 5 + [429]


def test_a_network_is_limited_as_one() -> None:
    assert limited_name("2001:db8:1:2:aaaa::1") == limited_name("2001:db8:1:2:bbbb::9") == "2001:db8:1:2::/64"
    assert limited_name("2001:db8:1:3::1") != limited_name("2001:db8:1:2::1")
    assert limited_name("::ffff:192.0.2.1") == limited_name("192.0.2.1") == "192.0.2.1"
    assert limited_name("testclient") == "testclient"


# --- rankings -----------------------------------------------------------------------------------


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
    assert ask(scopeTopic="category", limit=1) == ["B"]
    assert ask(scopeTopic="nothing") == []
    assert ask(scopeTopic="category", includeWeights=True)[0] == {
        "scopeTopic": "category", "value": "B", "weight": 2.0, "current": 2, "previous": 0,
    }  # fmt: skip


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
    for day, weight, now_a, weight_a, now_b, weight_b, leader in table("Worked: an interest that shifts"):
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
            "A": (int(now_a), 45), "B": (int(now_b), 10),
        }  # fmt: skip
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
