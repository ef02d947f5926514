"""The engine on DynamoDB knows what it knows in memory, bit for bit; what is due happens once there too."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings

from tests.engine.test_dispatch import (  # noqa: F401 - these are run here once more, on this store
    POLICY,
    Clock,
    clock,
    test_a_lease_is_taken_over_when_it_has_run_out_and_not_before,
    test_a_timer_fires_when_it_is_due_and_once,
    test_two_dispatchers_do_nothing_twice,
    test_what_failed_is_tried_again_later_and_later,
    test_who_was_paused_past_the_lease_commits_nothing,
)
from tests.laws import staging
from tests.servers.dynamodb import ministack
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.maintenance.thread_tally import SETTLED_AFTER
from threadline.engine.maintenance.verification import verify
from threadline.kernel.event import Event
from threadline.kernel.store import feed_pages
from threadline.kernel.time import MINUTE
from threadline.stores.dynamodb.layout import journal_key
from threadline.stores.dynamodb.store import DynamoStore
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.scenarios import telling
from threadline.testing.store_cases import at_once
from threadline.testing.world import World


@pytest.fixture
def engine(tmp_path: Path, clock: Clock) -> Iterator[Engine]:  # noqa: F811 - the fixture of that name
    """The engine of `tests/engine/test_dispatch.py`, on a table instead of in memory."""
    store = ministack().open(tmp_path)
    values = [*discover("threadline.capabilities.profile.people.projection", definitions=None), POLICY]
    yield Engine(store, Catalogue(values, rules()), clock)
    store.close()


@pytest.mark.costly
@settings(max_examples=7)
@given(scenarios.histories(count_max=40), scenarios.randoms)
def test_the_same_calls_give_the_same_dump(history: list[Event], random: Random) -> None:
    calls = telling(scenarios.shuffled, random, history)
    with tempfile.TemporaryDirectory() as folder:
        store = ministack().open(folder)
        on = staging.tell(store, calls, staging.ticking())
        model = staging.tell(MemoryStore(), calls, staging.ticking())
        assert staging.whole(on) == staging.whole(model)
        assert [page.entry for page in feed_pages(store)] == [page.entry for page in feed_pages(model.store)]
        staging.assert_refold_changes_nothing(on)
        store.close()


def test_a_world_with_everything_in_it_gives_the_same_dump(tmp_path: Path, seed: int) -> None:
    world = World(seed, people=100, history=800, late=0.1, duplicates=0.1)
    calls = list(world.batches(800, 100))
    store = ministack().open(tmp_path)
    on, model = staging.tell(store, calls), staging.tell(MemoryStore(), calls)
    assert staging.whole(on) == staging.whole(model)
    staging.assert_log_is_whole(on)
    store.close()


def test_engines_that_write_the_same_people_all_get_through(tmp_path: Path, seed: int) -> None:
    history = scenarios.history(Random(seed), people=4, count=160)
    stores = [ministack().open(tmp_path) for _ in range(4)]
    engines = [staging.engine(store) for store in stores]

    def tell(on: Engine, told: list[Event]) -> None:
        for first in range(0, len(told), 10):
            assert set(staging.statuses(on.recorder.record(told[first : first + 10]))) == {"accepted"}

    at_once(*[lambda on=on, told=history[n::4]: tell(on, told) for n, on in enumerate(engines)])
    for store in stores[1:]:
        store.close()
    on = staging.engine(stores[0])
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
    stores[0].close()


def test_verify_names_the_event_of_which_the_journal_lost_its_entry(engine: Engine, clock: Clock) -> None:  # noqa: F811
    # The page of the event is there, and found under its id and in its thread; the feed follows from the journal alone.
    for number in range(3):
        engine.recorder.record([staging.event("page", {"user_id": "ada"}, f"{number}", clock.now)])
    store, entries = engine.store, [feed_entry.entry for feed_entry in feed_pages(engine.store)]
    assert isinstance(store, DynamoStore)
    positions = [feed_entry.cursor.partition(".")[0] for feed_entry in feed_pages(store)]
    table = {"TableName": store.client.address.table, "Key": journal_key(positions[1])}
    store.client.call("DeleteItem", table)
    clock.now += SETTLED_AFTER + MINUTE
    assert len(list(feed_pages(store))) == 2
    lost = entries[1]
    assert verify(engine).faults == [f"thread {lost.thread} has 1 event that the feed lacks: {lost.id}"]
