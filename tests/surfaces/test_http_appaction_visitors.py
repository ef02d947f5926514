"""Actions of visitors over HTTP: by whom they are known, how many they may send, and which proxies are believed."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.appaction_stage import ACTION, USER, VISITOR, as_user, events, settings
from tests.surfaces.conftest import NOW, Clock, Keys
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.time import MINUTE, SECOND
from threadline.settings import Settings
from threadline.surfaces.http.addresses.appaction import NAMES_MAX, Window
from threadline.surfaces.http.callers.access import ClientAddress, limited_name
from threadline.surfaces.http.server.application import Application


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
    ids = {engine.reader.person("default", f"anonymous_id:{device}").id for device in ("device-1", "device-2")}
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
