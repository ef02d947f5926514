"""The engine on PostgreSQL knows what it knows in memory, bit for bit, in one process and in several at once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings

from tests.laws import staging
from tests.servers.postgres import server, store_in
from threadline.engine.engine import Engine
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.event import Event
from threadline.kernel.store import feed_pages
from threadline.stores.memory import MemoryStore
from threadline.stores.postgres.store import PostgresStore
from threadline.testing import scenarios
from threadline.testing.scenarios import telling
from threadline.testing.store_cases import at_once
from threadline.testing.world import World


@settings(max_examples=15)
@given(scenarios.histories(count_max=60), scenarios.randoms)
def test_the_same_calls_give_the_same_dump(history: list[Event], random: Random) -> None:
    calls = telling(scenarios.shuffled, random, history)
    with tempfile.TemporaryDirectory() as folder:
        store = store_in(server("18"), Path(folder))
        on = staging.tell(store, calls, staging.ticking())
        model = staging.tell(MemoryStore(), calls, staging.ticking())
        assert staging.whole(on) == staging.whole(model)
        assert list(feed_pages(store)) == list(feed_pages(model.store)), "the cursors are the same as well"
        staging.assert_refold_changes_nothing(on)
        store.close()


def test_a_world_with_everything_in_it_gives_the_same_dump(tmp_path: Path, seed: int) -> None:
    world = World(seed, people=150, history=1_500, late=0.1, duplicates=0.1)
    calls = list(world.batches(1_500, 100))
    store = store_in(server("18"), tmp_path)
    on, model = staging.tell(store, calls), staging.tell(MemoryStore(), calls)
    assert staging.whole(on) == staging.whole(model)
    staging.assert_log_is_whole(on)
    assert store.integrity() == []
    store.close()


def test_engines_that_write_the_same_people_all_get_through(tmp_path: Path, seed: int) -> None:
    # Four caches, four people: nearly every group meets another one.
    history = scenarios.history(Random(seed), people=4, count=400)
    stores = [store_in(server("18"), tmp_path) for _ in range(4)]
    engines = [staging.engine(store) for store in stores]

    def tell(on: Engine, told: list[Event]) -> None:
        for first in range(0, len(told), 10):
            assert set(staging.statuses(on.recorder.record(told[first : first + 10]))) == {"accepted"}

    at_once(*[lambda on=on, told=history[n::4]: tell(on, told) for n, on in enumerate(engines)])
    on = staging.engine(stores[0])
    assert staging.timeless(on) == staging.timeless(staging.tell(MemoryStore(), [history]))
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
    for store in stores:
        store.close()


def test_what_one_process_changes_the_others_see_at_once(tmp_path: Path) -> None:
    one, other = (staging.engine(store_in(server("18"), tmp_path)) for _ in range(2))
    event = staging.event
    for on in (one, other):
        on.recorder.record(
            [event("page", {"user_id": "a"}, f"{id(on)}-1"), event("page", {"user_id": "b"}, f"{id(on)}-2")]
        )
    survivor, _ = one.identity.merge("default", "user_id:a", "user_id:b", request="m", force=True)
    assert other.reader.person("default", "user_id:b").id == survivor
    assert [r.person for r in other.recorder.record([event("page", {"user_id": "b"}, "3")])] == [survivor]
    person, apart = other.identity.split("default", survivor, ["user_id:b"], request="s")
    assert {one.recorder.record([event("page", {"user_id": name}, f"4{name}")])[0].person for name in "ab"} == {
        person,
        apart,
    }
    _, token = one.credentials.create("default", "token", "ada", ["read"])
    assert other.credentials.find(token) is not None
    refold_everybody(one.store, one.catalogue)
    assert other.recorder.record([event("page", {"user_id": "a"}, "5")])[0].status == "accepted"
    staging.assert_log_is_whole(one)
    staging.assert_refold_changes_nothing(other)
    for on in (one, other):
        assert isinstance(on.store, PostgresStore)
        on.close()
