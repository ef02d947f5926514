"""The rate limit of a person: on every way in, without harm to neighbours, and with nothing lost in silence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.servers import redis as servers
from tests.surfaces.conftest import Clock, Keys, client_of, keys_of
from tests.surfaces.web_tokens import SECRET, token
from threadline.app import open_engine, open_limits
from threadline.engine.engine import Engine
from threadline.kernel.time import SECOND
from threadline.settings import Settings
from threadline.surfaces.http.events.rate import PERSON_RATE_LIMITED
from threadline.surfaces.http.events.writer import SHARE_EVENTS
from threadline.surfaces.http.server.application import Application

NOTHING_COMES_BACK = 0.001
"""Events a second: none while a test runs."""

Send = Callable[[str, str], httpx.Response]
"""Tells one event of a person (user id, key)."""


def limited(engine: Engine, burst: int = 3, address: str = "testclient", **more: Any) -> TestClient:
    """A server that takes so many new events of a person. Another one on the same engine is one of a later time."""
    chosen = Settings(
        access_log=False,
        person_events_per_second=NOTHING_COMES_BACK,
        person_burst_events=burst,
        person_limit_tokens=True,
        jwt_secret=SECRET,
        anonymous_actions_per_minute=0,
        **more,
    )
    return TestClient(Application(engine, chosen), client=(address, 1), raise_server_exceptions=False)


def ways(client: TestClient, keys: Keys, clock: Clock) -> dict[str, Send]:
    """Every way in, each telling an event of a user."""
    key = {"authorization": f"Bearer {keys.writer}"}

    def segment(path: str) -> Send:
        def send(user: str, name: str) -> httpx.Response:
            return client.post(path, json={"userId": user, "event": "click", "messageId": name}, headers=key)

        return send

    def batch(path: str) -> Send:
        def send(user: str, name: str) -> httpx.Response:
            return client.post(path, json={"batch": [track(user, name)]}, headers=key)

        return send

    def cloudevent(user: str, name: str) -> httpx.Response:
        event = {"specversion": "1.0", "source": "/shop", "type": "click", "subject": user, "id": name}
        return client.post(
            "/v1/cloudevents", json=event, headers={**key, "content-type": "application/cloudevents+json"}
        )

    def native(user: str, name: str) -> httpx.Response:
        event = {"type": "click", "identifiers": {"user_id": user}, "key": name}
        return client.post("/v1/events", json={"events": [event]}, headers=key)

    def action(user: str, name: str) -> httpx.Response:
        good = token({"sub": user, "exp": clock.now // SECOND + 60})
        body = {"topic": "Article", "applicationId": "web", "actionId": name}
        return client.post("/ux/user/appaction", json=body, headers={"authorization": f"Bearer {good}"})

    calls = {path: segment(path) for path in ("/v1/track", "/v1/t", "/t")}
    batches = {path: batch(path) for path in ("/v1/batch", "/v1/b", "/b", "/v1/import")}
    return {**calls, **batches, "cloudevents": cloudevent, "native": native, "action": action}


WAYS = ("/v1/track", "/v1/t", "/t", "/v1/batch", "/v1/b", "/b", "/v1/import", "cloudevents", "native", "action")


def track(user: str, name: str) -> dict[str, Any]:
    return {"type": "track", "userId": user, "event": "click", "messageId": name}


def batch(client: TestClient, keys: Keys, *told: tuple[str, str]) -> httpx.Response:
    messages = [track(user, name) for user, name in told]
    return client.post("/v1/batch", json={"batch": messages}, headers=keys.bearer("write"))


def entries(client: TestClient, keys: Keys, status: str = "") -> list[dict[str, Any]]:
    answer = client.get("/v1/rejected", params={"status": status}, headers=keys.bearer("read"))
    found: list[dict[str, Any]] = answer.json()["entries"]
    return found


def keys_told(engine: Engine, person: str) -> list[str]:
    return sorted(each.event.key for each in engine.reader.events(engine.reader.person("default", person)))


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_is_limited(way: str, engine: Engine, keys: Keys, clock: Clock) -> None:
    with limited(engine) as client:
        send = ways(client, keys, clock)[way]
        told = [send("ada", f"e{number}") for number in range(5)]
        assert [each.status_code for each in told] == [200] * 3 + [429] * 2
        assert 900 <= int(told[-1].headers["retry-after"]) <= 1_000
        assert told[-1].headers["x-ratelimit-reset"] == told[-1].headers["retry-after"]
        assert send("ada", "e0").status_code == 200, "a retry of what is recorded costs nothing"
        assert send("bob", "e0b").status_code == 200, "others are not concerned"
    assert entries(client_of(engine), keys) == [], "what is refused whole is kept nowhere"
    assert engine.reader.person("default", "user_id:ada").position == 3


def test_all_ways_in_have_one_limit_together(engine: Engine, keys: Keys, clock: Clock) -> None:
    with limited(engine, burst=len(WAYS)) as client:
        sends = ways(client, keys, clock)
        assert {way: sends[way]("ada", f"first {way}").status_code for way in WAYS} == dict.fromkeys(WAYS, 200)
        assert {way: sends[way]("ada", f"second {way}").status_code for way in WAYS} == dict.fromkeys(WAYS, 429)


def test_visitors_are_people_too(engine: Engine) -> None:
    body = {"topic": "Article", "applicationId": "web"}
    with limited(engine, burst=2, address="192.0.2.1") as client:
        named = [client.post("/ux/appaction", json={**body, "anonymousId": "device"}).status_code for _ in range(3)]
        nameless = [client.post("/ux/appaction", json=body).status_code for _ in range(3)]
    assert named == nameless == [200, 200, 429]


def test_a_person_is_known_by_the_strongest_identifier(engine: Engine, keys: Keys) -> None:
    def send(client: TestClient, **who: str) -> int:
        message = {"type": "track", "event": "click", **who}
        return client.post("/v1/batch", json={"batch": [message]}, headers=keys.bearer("write")).status_code

    with limited(engine, burst=1) as client:
        assert send(client, userId="ada", anonymousId="one") == 200
        assert send(client, userId="ada", anonymousId="two") == 429
        assert send(client, anonymousId="one") == 200  # her device alone is another thread


def test_workspaces_have_people_of_their_own(engine: Engine, keys: Keys) -> None:
    event = {"type": "click", "identifiers": {"user_id": "ada"}}
    with limited(engine, burst=1) as client:
        told = [
            client.post("/v1/events", json={"events": [{**event, "key": key}]}, headers=keys.bearer(name)).status_code
            for name in ("admin", "stranger")
            for key in ("one", "two")
        ]
    assert told == [200, 429, 200, 429]


def test_neighbours_of_who_is_over_the_limit_are_recorded(engine: Engine, keys: Keys) -> None:
    with limited(engine, burst=2) as client:
        assert batch(client, keys, ("bot", "b1"), ("bot", "b2")).status_code == 200
        answer = batch(client, keys, ("bot", "b3"), ("ada", "a1"), ("bot", "b1"), ("bot", "b4"), ("bob", "c1")).json()
        assert [answer[name] for name in ("success", "accepted", "duplicates")] == [True, 2, 1]
        refused = [(each["index"], each["messageId"], each["code"]) for each in answer["rejected"]]
        assert refused == [(0, "b3", PERSON_RATE_LIMITED), (3, "b4", PERSON_RATE_LIMITED)]
        kept = entries(client, keys)
        assert {(each["payload"]["key"], each["code"], each["status"]) for each in kept} == {
            ("b3", PERSON_RATE_LIMITED, "open"),
            ("b4", PERSON_RATE_LIMITED, "open"),
        }
    assert keys_told(engine, "user_id:bot") == ["b1", "b2"]
    assert keys_told(engine, "user_id:ada") == ["a1"]


def test_receipts_of_native_events_stand_where_their_events_do(engine: Engine, keys: Keys) -> None:
    def native(client: TestClient, *told: tuple[str, str]) -> Any:
        events = [{"type": "click", "identifiers": {"user_id": user}, "key": key} for user, key in told]
        return client.post("/v1/events", json={"events": events}, headers=keys.bearer("writer"))

    with limited(engine, burst=1) as client:
        assert native(client, ("bot", "b1")).status_code == 200
        answer = native(client, ("bot", "b2"), ("ada", "a1"), ("bot", "b1"), ("bot", "b3")).json()
        assert [each["status"] for each in answer["receipts"]] == ["rejected", "accepted", "duplicate", "rejected"]
        assert answer["receipts"][0]["code"] == PERSON_RATE_LIMITED
        assert [answer[name] for name in ("accepted", "duplicates", "conflicts", "rejected")] == [1, 1, 0, 2]
        assert {each["payload"]["key"] for each in entries(client, keys)} == {"b2", "b3"}
        metrics = client.get("/metrics", headers=keys.bearer("admin")).text
    assert 'outcome="rejected"} 2' in metrics


def test_a_batch_of_a_person_is_never_cut_in_two(engine: Engine, keys: Keys) -> None:
    with limited(engine, burst=3) as client:
        assert batch(client, keys, *[("ada", f"a{number}") for number in range(50)]).json()["accepted"] == 50
        assert int(batch(client, keys, ("ada", "late")).headers["retry-after"]) > 40_000  # all of it is owed


def test_what_was_refused_can_be_told_again_or_re_submitted(engine: Engine, keys: Keys) -> None:
    def resubmit(client: TestClient, entry: dict[str, Any]) -> Any:
        return client.post(f"/v1/rejected/{entry['id']}/resubmit", json={}, headers=keys.bearer("admin"))

    whole = [("bot", "b2"), ("bot", "b3"), ("ada", "a1")]
    with limited(engine, burst=1) as client:
        batch(client, keys, ("bot", "b1"))
        assert len(batch(client, keys, *whole).json()["rejected"]) == 2
        again = batch(client, keys, *whole)
        assert again.status_code == 429, "its answer was lost: nothing in it can be recorded now, and nothing is new"
        kept = {each["payload"]["key"]: each for each in entries(client, keys)}
        assert len(entries(client, keys)) == 2
        assert resubmit(client, kept["b2"]).status_code == 429
        assert entries(client, keys, "open") == entries(client, keys)
    with limited(engine, burst=1) as client:  # some time later
        done = resubmit(client, kept["b2"]).json()
        assert (done["receipt"]["status"], done["entry"]["status"]) == ("accepted", "resubmitted")
        assert resubmit(client, kept["b2"]).status_code == 409
        assert resubmit(client, kept["b3"]).status_code == 429
    with limited(engine, burst=1) as client:
        assert batch(client, keys, *whole).json()["accepted"] == 1
        done = resubmit(client, kept["b3"]).json()
        assert (done["receipt"]["status"], done["entry"]["status"]) == ("duplicate", "resubmitted")
    assert keys_told(engine, "user_id:bot") == ["b1", "b2", "b3"]


def test_a_correction_counts_for_the_person_whom_it_names(engine: Engine, keys: Keys) -> None:
    with limited(engine, burst=1) as client:
        batch(client, keys, ("ada", "a1"))
        client.post("/v1/track", json={"userId": "bob", "messageId": "bad"}, headers=keys.bearer("write"))
        (entry,) = entries(client, keys)
        of_ada = {"event": {"type": "click", "identifiers": {"user_id": "ada"}}}
        of_bob = {"event": {"type": "click", "identifiers": {"user_id": "bob"}}}
        path = f"/v1/rejected/{entry['id']}/resubmit"
        assert client.post(path, json=of_ada, headers=keys.bearer("admin")).status_code == 429
        assert client.post(path, json=of_bob, headers=keys.bearer("admin")).status_code == 200


def test_an_event_that_stands_twice_is_refused_twice_and_kept_once(engine: Engine, keys: Keys) -> None:
    with limited(engine, burst=1) as client:
        batch(client, keys, ("bot", "b1"))
        answer = batch(client, keys, ("bot", "b2"), ("ada", "a1"), ("bot", "b2")).json()
        assert [each["index"] for each in answer["rejected"]] == [0, 2]
        assert len(entries(client, keys)) == 1
    assert keys_told(engine, "user_id:bot") == ["b1"]


def test_more_refused_than_the_writer_keeps_at_once_are_all_kept(engine: Engine, keys: Keys) -> None:
    told = [("bot", f"b{number}") for number in range(3 * SHARE_EVENTS + 7)]
    with limited(engine, burst=1) as client:
        batch(client, keys, ("bot", "first"))
        assert len(batch(client, keys, ("ada", "a1"), *told).json()["rejected"]) == len(told)
        answer = client.get("/v1/rejected", params={"limit": 1_000}, headers=keys.bearer("read")).json()
    assert {each["payload"]["key"] for each in answer["entries"]} == {name for _, name in told}


def test_a_refused_request_is_counted_nowhere(engine: Engine, keys: Keys) -> None:
    more = {"source_events_per_second": NOTHING_COMES_BACK, "source_burst_events": 4}
    with limited(engine, burst=1, **more) as client:
        assert batch(client, keys, ("bot", "b1")).status_code == 200
        for _ in range(9):
            assert batch(client, keys, ("bot", "b2")).status_code == 429
        assert batch(client, keys, ("ada", "a1"), ("bob", "c1"), ("eve", "d1")).status_code == 200
        assert batch(client, keys, ("kim", "k1")).status_code == 429, "now it is the source"
        other = client.post(
            "/v1/events",
            json={"events": [{"type": "click", "identifiers": {"user_id": "kim"}, "key": "k1"}]},
            headers=keys.bearer("writer"),
        )
        assert other.status_code == 200, "and her request through it was not counted for her"


def test_what_names_nobody_has_its_own_reason(engine: Engine, keys: Keys) -> None:
    nobody = {"type": "track", "userId": "null", "event": "click", "messageId": "n1"}
    with limited(engine, burst=1) as client:
        messages = [track("ada", "a1"), nobody]
        answer = client.post("/v1/batch", json={"batch": messages}, headers=keys.bearer("write")).json()
    assert (answer["accepted"], [each["code"] for each in answer["rejected"]]) == (1, ["no_identifier"])


@settings(max_examples=25)
@given(
    st.integers(1, 3),
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), min_size=1, max_size=6), max_size=6),
)
def test_whatever_is_told_is_recorded_or_kept_or_asked_for_again(burst: int, told: list[list[tuple[str, int]]]) -> None:
    engine = open_engine("memory:", Settings(), Clock())
    keys = keys_of(engine)
    recorded: dict[str, set[str]] = {user: set() for user in "abc"}
    kept: set[str] = set()
    with limited(engine, burst) as client:
        for request in told:
            names = [(user, f"{user}{number}") for user, number in request]
            fresh = {(user, name) for user, name in names if name not in recorded[user]}
            over = {user for user in "abc" if len(recorded[user]) >= burst}
            answer = batch(client, keys, *names)
            if fresh and {user for user, _ in fresh} <= over:
                assert answer.status_code == 429
                continue
            refused = [name in {each for _, each in fresh} and user in over for user, name in names]
            outcome = answer.json()
            assert [each["index"] for each in outcome["rejected"]] == [i for i, each in enumerate(refused) if each]
            assert outcome["accepted"] == sum(user not in over for user, _ in fresh)
            assert outcome["accepted"] + outcome["duplicates"] + len(outcome["rejected"]) == len(names)
            kept |= {name for user, name in fresh if user in over}
            for user, name in fresh:
                recorded[user] |= {name} - kept
    assert {each.entry.type for each in engine.log.feed()} <= {"click"}
    assert {engine.log.read(each).event.key for each in engine.log.feed()} == set().union(*recorded.values())
    assert {entry.key for _, entry in engine.rejected.page("default")} == kept
    engine.close()


def test_servers_count_people_together_as_long_as_redis_is_there(engine: Engine, keys: Keys, tmp_path: Path) -> None:
    with servers.running(tmp_path) as redis, ExitStack() as stack:
        chosen = Settings(
            access_log=False,
            person_events_per_second=NOTHING_COMES_BACK,
            person_burst_events=4,
            cache=redis.url,
            cache_timeout_seconds=10,
        )
        one, two = (
            stack.enter_context(TestClient(Application(engine, chosen, limits=open_limits(chosen)))) for _ in range(2)
        )

        def rounds(numbers: range) -> list[int]:
            told = [(client, f"{number} {id(client)}") for number in numbers for client in (one, two)]
            return [batch(client, keys, ("ada", name)).status_code for client, name in told]

        assert rounds(range(4)) == [200] * 4 + [429] * 4
        mixed = batch(two, keys, ("ada", "late"), ("bob", "c1")).json()
        assert (mixed["accepted"], len(mixed["rejected"])) == (1, 1)
        redis.kill()
        assert rounds(range(4, 8)) == [200] * 4 + [429] * 4  # each knows what it let pass itself: two each
