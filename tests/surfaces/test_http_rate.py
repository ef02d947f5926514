"""Rate limits: a burst, a refill, debts that are paid, a bounded memory, and no way in that goes around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys, client_of
from tests.surfaces.segment_stage import basic, track
from threadline.engine.engine import Engine
from threadline.settings import Settings
from threadline.surfaces.http.events import rate
from threadline.surfaces.http.events.rate import Buckets
from threadline.surfaces.http.server.application import Application


class Seconds:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_what_comes_after_waits() -> None:
    seconds = Seconds()
    buckets = Buckets(2.0, 10, seconds)
    for _ in range(10):
        assert buckets.wait("a") == 0
        buckets.charge("a", 1)
    assert buckets.wait("a") == 1
    assert buckets.wait("b") == 0
    seconds.now = 0.5
    assert buckets.wait("a") == 0


def test_a_debt_is_waited_for() -> None:
    seconds = Seconds()
    buckets = Buckets(2.0, 10, seconds)
    buckets.charge("a", 30)
    assert buckets.wait("a") == 11  # 20 owed and one to have, at 2 a second
    seconds.now = 10.4
    assert buckets.wait("a") == 1
    seconds.now = 10.5
    assert buckets.wait("a") == 0


def test_no_more_than_a_burst_is_saved_up() -> None:
    seconds = Seconds()
    buckets = Buckets(100.0, 5, seconds)
    seconds.now = 1_000.0
    buckets.charge("a", 5)
    assert buckets.wait("a") == 1


def test_memory_is_bounded_and_forgets_those_who_sent_longest_ago() -> None:
    buckets = Buckets(0.001, 1, Seconds())
    buckets.charge("first", 1)
    for index in range(rate.NAMES_MAX):
        buckets.charge(f"n{index}", 1)
    assert len(buckets._levels) == rate.NAMES_MAX
    assert buckets.wait("first") == 0
    assert buckets.wait("n0") > 0


def test_who_keeps_coming_over_the_limit_is_not_forgotten() -> None:
    buckets = Buckets(0.001, 1, Seconds())
    buckets.charge("loop", 1)
    for index in range(rate.NAMES_MAX):
        assert buckets.wait("loop") > 0
        buckets.charge(f"n{index}", 1)
    assert buckets.wait("loop") > 0


def test_a_rate_of_nothing_is_no_limit() -> None:
    assert not Buckets(0.0, 1).on


NOTHING_COMES_BACK = 0.001
"""Events a second: none while a test runs."""


@pytest.fixture(params=["source", "address"])
def limited(request: pytest.FixtureRequest, engine: Engine) -> Iterator[TestClient]:
    """A server that takes three new events of a source or of an address."""
    limits: dict[str, Any] = {
        f"{request.param}_events_per_second": NOTHING_COMES_BACK,
        f"{request.param}_burst_events": 3,
    }
    with client_of(engine, Settings(access_log=False, **limits)) as client:
        yield client


@pytest.mark.parametrize(
    ("addresses", "statuses"),
    [
        (("2001:db8:1:2::1", "2001:db8:1:2:aaaa::9", "2001:db8:1:3::1"), [200, 429, 200]),
        (("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"), [200, 429, 200]),
    ],
)
def test_an_address_is_counted_by_what_one_customer_is_given(
    addresses: tuple[str, ...], statuses: list[int], engine: Engine, keys: Keys
) -> None:
    settings = Settings(access_log=False, address_events_per_second=NOTHING_COMES_BACK, address_burst_events=1)
    application = Application(engine, settings)
    told = []
    for number, address in enumerate(addresses):
        with_address = TestClient(application, client=(address, 1))
        told.append(segment(with_address, keys.write, [f"e{number}"]).status_code)
    assert told == statuses


def segment(client: TestClient, secret: str, names: list[str]) -> httpx.Response:
    batch = [{"type": "track", "userId": "1", "event": "click", "messageId": name} for name in names]
    return client.post("/v1/batch", json={"batch": batch}, headers={"authorization": f"Bearer {secret}"})


def cloudevents(client: TestClient, secret: str, names: list[str]) -> httpx.Response:
    common = {"specversion": "1.0", "source": "/shop", "type": "click", "subject": "1"}
    headers = {"content-type": "application/cloudevents-batch+json", "authorization": f"Bearer {secret}"}
    return client.post("/v1/cloudevents", json=[{**common, "id": name} for name in names], headers=headers)


def native(client: TestClient, secret: str, names: list[str]) -> httpx.Response:
    events = [{"type": "click", "identifiers": {"user_id": "1"}, "key": name} for name in names]
    return client.post("/v1/events", json={"events": events}, headers={"authorization": f"Bearer {secret}"})


@pytest.mark.parametrize("send", [segment, cloudevents, native])
def test_every_way_in_is_limited(send: Any, limited: TestClient, keys: Keys) -> None:
    first = [f"e{number}" for number in range(4)]
    assert send(limited, keys.writer, first).status_code == 200
    refused = send(limited, keys.writer, [*first, "new"])
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert send(limited, keys.writer, first).status_code == 200, "a retry costs nothing"


def test_the_ways_in_have_one_limit_together(limited: TestClient, keys: Keys, engine: Engine) -> None:
    for number, send in enumerate((segment, cloudevents, native)):
        assert send(limited, keys.writer, [f"e{number}"]).status_code == 200
    assert {send(limited, keys.writer, ["new"]).status_code for send in (segment, cloudevents, native)} == {429}
    assert engine.log.of_key("default", "writer", "new") is None


def test_what_can_be_no_event_is_counted_too(limited: TestClient, keys: Keys) -> None:
    headers = {"authorization": f"Bearer {keys.write}"}
    bad = {"batch": [{"type": "track", "messageId": f"bad{number}"} for number in range(2)]}
    assert len(limited.post("/v1/batch", json=bad, headers=headers).json()["rejected"]) == 2
    assert limited.post("/v1/batch", content=b"no JSON", headers=headers).status_code == 400
    assert limited.post("/v1/batch", content=b"no JSON either", headers=headers).status_code == 429
    assert limited.post("/v1/batch", json=bad, headers=headers).status_code == 429
    assert segment(limited, keys.write, ["good"]).status_code == 429


def test_what_can_be_no_event_is_counted_however_often_it_is_told(limited: TestClient, keys: Keys) -> None:
    def nobody(key: str) -> httpx.Response:
        twice = [{"type": "track", "userId": "null", "event": "click", "messageId": key}] * 2
        return limited.post("/v1/batch", json={"batch": twice}, headers={"authorization": f"Bearer {keys.write}"})

    assert [nobody(f"n{number}").status_code for number in range(4)] == [200] * 3 + [429]


# --- what counts -----------------------------------------------------------------------------------


def test_a_rate_limit_counts_new_events_only(engine: Engine, keys: Keys) -> None:
    settings = Settings(source_events_per_second=0.005, source_burst_events=3, access_log=False)
    with client_of(engine, settings) as client:
        batch = {"batch": [track(f"m{i}") for i in range(4)]}
        assert client.post("/v1/batch", json=batch, headers=basic(keys.write)).json()["accepted"] == 4
        refused = client.post("/v1/t", json=track("new"), headers=basic(keys.write))
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == refused.headers["x-ratelimit-reset"]
        assert 1 <= int(refused.headers["retry-after"]) <= 500
        again = client.post("/v1/batch", json=batch, headers=basic(keys.write))
        assert (again.status_code, again.json()["duplicates"]) == (200, 4)
        other = client.post("/v1/t", json=track("other"), headers=keys.bearer("writer"))
        assert other.json()["accepted"] == 1, "another source has its own limit"
        assert client.post("/v1/t", json=track("new"), headers=basic(keys.write)).status_code == 429
    assert engine.log.of_key("default", "shop", "new") is None


def test_a_rate_limit_counts_conflicts(engine: Engine, keys: Keys) -> None:
    settings = Settings(source_events_per_second=0.001, source_burst_events=3, access_log=False)
    with client_of(engine, settings) as client:

        def send(*messages: dict[str, Any]) -> int:
            return client.post("/v1/batch", json={"batch": list(messages)}, headers=basic(keys.write)).status_code

        assert send(track("m"), track("m")) == 200
        assert send(track("m", event="other"), track("m")) == 200
        assert send(track("m", event="third"), track("m", event="third")) == 200
        assert send(track("m", event="fourth")) == 429
        assert send(track("m"), track("m")) == 200


def test_so_does_one_for_events_in_our_own_form(engine: Engine, keys: Keys) -> None:
    settings = Settings(source_events_per_second=0.001, source_burst_events=2, access_log=False)
    with client_of(engine, settings) as client:

        def send(type: str) -> int:
            event = {"type": type, "key": "m", "identifiers": {"user_id": "1"}}
            return client.post("/v1/events", json={"events": [event]}, headers=keys.bearer("writer")).status_code

        assert [send(type) for type in ("a", "a", "b", "c", "a")] == [200, 200, 200, 429, 200]


def test_a_rate_limit_by_address_spans_sources(engine: Engine, keys: Keys) -> None:
    settings = Settings(address_events_per_second=0.001, address_burst_events=1, access_log=False)
    with client_of(engine, settings) as client:
        assert client.post("/v1/t", json=track("a"), headers=basic(keys.write)).status_code == 200
        assert client.post("/v1/t", json=track("b"), headers=keys.bearer("writer")).status_code == 429
