"""The people whom a recorder keeps between calls: within a budget of real memory, with a rate of hits that is shown."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from threadline.app import catalogue
from threadline.engine.engine import Engine, Surroundings
from threadline.engine.machine import memory_bytes
from threadline.engine.recording.working_set import people_cache_bytes
from threadline.stores.memory import MemoryStore
from threadline.surfaces.http.addresses.gauges import gauges
from threadline.testing.world import World

GB = 1_000_000_000
EVENTS = 4_000
WORLD = World(seed=3, people=2_000, history=EVENTS)


def recorded(budget: int, events: int = EVENTS) -> Engine:
    surroundings = Surroundings(people_cache_bytes=budget)
    engine = Engine(MemoryStore(), catalogue(), lambda: WORLD.ends_at(EVENTS), surroundings)
    for batch in WORLD.batches(events, 100):
        engine.recorder.record(batch)
    return engine


@pytest.mark.parametrize("budget", [2_000_000, 4_000_000])
def test_a_full_cache_takes_about_its_budget_of_real_memory_and_never_a_tenth_more(budget: int) -> None:
    tracemalloc.start()
    try:
        people = recorded(budget).recorder.people_cache.people
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        people.clear()
        gc.collect()
        taken = before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.4 * budget < taken < 1.1 * budget


def test_a_larger_budget_finds_more_people_and_reads_fewer() -> None:
    small, large = recorded(500_000).recorder.people_cache, recorded(50_000_000).recorder.people_cache
    assert large.hits > small.hits
    assert 10 * large.misses < small.misses


def test_metrics_and_doctor_show_the_budget_and_how_often_somebody_was_there() -> None:
    engine = recorded(500_000, 1_000)
    cache, shown = engine.recorder.people_cache, gauges(engine)
    assert [shown[f"people_cache_{name}"][1] for name in ("bytes_max", "hits", "misses")] == [
        500_000,
        cache.hits,
        cache.misses,
    ]
    [finding] = [finding for finding in engine.doctor.findings(engine.clock()) if finding.what == "cache"]
    assert f"{cache.hits / (cache.hits + cache.misses):.0%} of the people" in finding.seen


@pytest.mark.parametrize(("memory", "budget"), [(GB // 2, 48_000_000), (3 * GB, 62_500_000), (64 * GB, 96_000_000)])
def test_the_budget_is_a_share_of_the_memory_within_bounds(memory: int, budget: int) -> None:
    assert people_cache_bytes(memory) == budget


@pytest.mark.parametrize(("text", "is_limited"), [("1000000\n", True), ("max\n", False), (None, False)])
def test_the_limit_of_a_container_counts_instead_of_the_machine(
    tmp_path: Path, text: str | None, is_limited: bool
) -> None:
    limit = tmp_path / "memory.max"
    if text is not None:
        limit.write_text(text)
    assert memory_bytes((limit,)) == (1_000_000 if is_limited else memory_bytes(()))
