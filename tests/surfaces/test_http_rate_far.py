"""What the limit of a person costs: nothing for who is far from it, and nothing of theirs that was not recorded."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys, client_of
from tests.surfaces.test_http_rate_person import NOTHING_COMES_BACK, batch, limited, track
from threadline.engine.engine import Engine
from threadline.kernel.errors import StoreFull
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application


def test_by_default_a_loop_with_a_write_key_is_stopped_and_history_with_a_token_is_not(
    engine: Engine, keys: Keys
) -> None:
    with client_of(engine) as client:
        first = [("bot", f"b{number}") for number in range(1_200)]
        assert batch(client, keys, *first).json()["accepted"] == 1_200, "a batch is never cut in two"
        refused = batch(client, keys, ("bot", "late"))
        assert (refused.status_code, refused.headers["retry-after"] in {"1", "2", "3"}) == (429, True)
        claimed = {**track("bot", "old"), "timestamp": "2020-01-01T00:00:00Z", "historical": True}
        history = {"batch": [claimed]}
        assert client.post("/v1/batch", json=history, headers=keys.bearer("write")).status_code == 429
        assert client.post("/v1/batch", json=history, headers=keys.bearer("writer")).status_code == 200


def test_retries_of_much_that_is_recorded_take_nothing_of_what_is_left(engine: Engine, keys: Keys) -> None:
    told = [("ada", f"a{number}") for number in range(8)]
    with limited(engine, burst=30) as client:
        assert batch(client, keys, *told).json()["accepted"] == 8
        for _ in range(9):
            assert batch(client, keys, *told).json()["duplicates"] == 8
        more = [("ada", f"more{number}") for number in range(22)]
        assert [batch(client, keys, each).status_code for each in more] == [200] * 22
        assert batch(client, keys, ("ada", "over")).status_code == 429


def test_what_a_full_store_did_not_take_counts_for_nobody(
    engine: Engine, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [("ada", f"a{number}") for number in range(4)]

    def full(batches: Any) -> Any:
        raise StoreFull("full")

    with limited(engine, burst=10) as client:
        with monkeypatch.context() as patched:
            patched.setattr(engine.store, "commit", full)
            assert {batch(client, keys, *told).status_code for _ in range(9)} == {503}
        assert batch(client, keys, *told).json()["accepted"] == 4
        assert batch(client, keys, ("ada", "one more")).json()["accepted"] == 1


def test_only_who_is_near_a_limit_has_the_store_asked_what_is_new(
    engine: Engine, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    fresh = engine.recorder.fresh

    def noted(checked: Any) -> Any:
        asked.append(threading.get_ident())
        return fresh(checked)

    monkeypatch.setattr(engine.recorder, "fresh", noted)
    with limited(engine, burst=10) as client:
        for number in range(9):
            batch(client, keys, ("ada", f"a{number}"))
        assert not asked
        batch(client, keys, ("ada", "last"))
        assert batch(client, keys, ("ada", "over")).status_code == 429
        assert len(asked) == 2


def test_a_look_for_what_is_new_holds_up_nobody_else(
    engine: Engine, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go_on = threading.Event(), threading.Event()
    fresh = engine.recorder.fresh

    def slow(checked: Any) -> Any:
        looking.set()
        assert go_on.wait(60)
        return fresh(checked)

    monkeypatch.setattr(engine.recorder, "fresh", slow)
    with limited(engine, burst=2) as client, ThreadPoolExecutor() as threads:
        loud = threads.submit(batch, client, keys, *[("bot", f"b{number}") for number in range(9)])
        assert looking.wait(60)
        assert batch(client, keys, ("ada", "a1")).status_code == 200
        go_on.set()
        assert loud.result().json()["accepted"] == 9


def test_other_servers_are_asked_only_about_who_has_used_a_tenth_of_a_burst(engine: Engine, keys: Keys) -> None:
    asked: list[list[int]] = []

    class Shared:
        def take_of_people(self, limits: Any, events: int, person: Any, people: Any) -> tuple[float, list[float]]:
            asked.append([count for _, count in people])
            return 0.0, [0.0] * len(people)

    shared: Any = Shared()
    chosen = Settings(access_log=False, person_events_per_second=NOTHING_COMES_BACK, person_burst_events=100)
    with TestClient(Application(engine, chosen, limits=shared)) as client:
        for number in range(9):
            batch(client, keys, ("ada", f"a{number}"))
        assert not asked
        batch(client, keys, ("ada", "tenth"), ("bob", "b1"))
        batch(client, keys, ("bob", "b2"))
    assert asked == [[1, 1]]
