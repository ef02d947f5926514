"""Law: shuffle, duplicate, cut into other calls, crash anywhere — what is known is the same, and it is what is true."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from tests.laws import staging
from threadline.kernel.event import Event
from threadline.kernel.store import Store
from threadline.kernel.time import DAY, HOUR
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios
from threadline.testing.auditor import audit

IS_TORTURE = os.environ.get("THREADLINE_TEST_PROFILE") == "torture"


def assert_true(on: staging.Engine, told: list[Event]) -> None:
    """What the engine knows is what the auditor computes from the list of what was told."""
    audited = staging.readable(audit([scenarios.plain(event) for event in told], scenarios.NOW))
    known = staging.pictures(on)
    for person, expected in zip(known, audited, strict=True):
        score, expected_score = (each["features"].pop("engagement_score") for each in (person, expected))
        # The auditor computes in fractions and rounds once; the last of four digits may differ where that is a tie.
        assert score[0] == pytest.approx(expected_score[0], abs=2e-4)
        assert score[1] == expected_score[1]
        assert person == expected
    staging.assert_points_are_true(on)


@given(scenarios.histories(), scenarios.randoms)
def test_any_arrival_is_the_clean_run(history: list[Event], random: Random) -> None:
    clean = staging.tell(MemoryStore(), [[event] for event in history])
    calls = scenarios.telling(scenarios.shuffled, random, history)
    other = staging.tell(MemoryStore(), calls, staging.ticking())
    assert staging.timeless(other) == staging.timeless(clean)
    assert_true(clean, history)
    assert_true(other, history)


@given(scenarios.histories(), scenarios.randoms)
def test_crashes_anywhere_leave_no_trace(history: list[Event], random: Random) -> None:
    clean = staging.tell(MemoryStore(), [[event] for event in history])
    calls = scenarios.telling(scenarios.shuffled, random, history)
    other = staging.tell_through_crashes(MemoryStore(), calls, random, staging.ticking())
    assert staging.timeless(other) == staging.timeless(clean)
    staging.assert_log_is_whole(other)
    staging.assert_refold_changes_nothing(other)
    assert_true(other, history)


@given(scenarios.histories(), scenarios.randoms)
def test_sequences_too_survive_other_calls_duplicates_and_crashes(history: list[Event], random: Random) -> None:
    clean = staging.tell(MemoryStore(), [[event] for event in history])
    told_once = scenarios.batched(random, history)
    told_twice = scenarios.batched(random, scenarios.duplicated(random, history))
    assert staging.whole(staging.tell(MemoryStore(), told_once)) == staging.whole(clean)
    assert staging.whole(staging.tell(MemoryStore(), told_twice)) == staging.whole(clean)
    crashed = staging.tell_through_crashes(MemoryStore(), told_once, random)
    assert staging.whole(crashed) == staging.whole(clean)


@given(scenarios.histories(), scenarios.randoms)
def test_events_on_the_edge_of_late_are_late_in_any_order(history: list[Event], random: Random) -> None:
    edge = scenarios.NOW - 32 * DAY
    moved = [
        msgspec.structs.replace(event, occurred_at=edge + random.choice((-HOUR, -1, 0, 1, HOUR)))
        if random.random() < 0.5
        else event
        for event in history
    ]
    clean = staging.tell(MemoryStore(), [[event] for event in moved])
    # What is late depends on the clock, so that it stands still.
    other = staging.tell_through_crashes(MemoryStore(), scenarios.telling(scenarios.shuffled, random, moved), random)
    assert staging.timeless(other) == staging.timeless(clean)
    staging.assert_refold_changes_nothing(other)
    assert_true(other, moved)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Store]:
    store = SqliteStore(tmp_path / "thread.db")
    yield store
    store.close()


def _on_sqlite(sqlite: Store, seed: int, people: int, count: int) -> None:
    random = Random(seed)
    history = scenarios.history(random, people, count)
    clean = staging.tell(MemoryStore(), [[event] for event in history])
    calls = scenarios.telling(scenarios.shuffled, random, history)
    other = staging.tell_through_crashes(sqlite, calls, random, staging.ticking())
    assert staging.timeless(other) == staging.timeless(clean)
    staging.assert_log_is_whole(other)
    staging.assert_refold_changes_nothing(other)
    assert_true(other, history)


@pytest.mark.slow
def test_sqlite_through_crashes_is_the_memory_store(sqlite: Store, seed: int) -> None:
    _on_sqlite(sqlite, seed, people=8, count=250)


@pytest.mark.slow
def test_a_long_history_through_crashes_on_sqlite(sqlite: Store, seed: int) -> None:
    _on_sqlite(sqlite, seed + 1, people=40, count=4_000 if IS_TORTURE else 1_500)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios.histories(people=2, count_max=80), scenarios.randoms)
def test_crowded_people_too(history: list[Event], random: Random) -> None:
    calls = scenarios.telling(scenarios.shuffled, random, history)
    other = staging.tell_through_crashes(MemoryStore(), calls, random, staging.ticking())
    staging.assert_refold_changes_nothing(other)
    assert_true(other, history)
