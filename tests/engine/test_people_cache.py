"""The people whom a recorder keeps between calls: within a budget of real memory, with a rate of hits that is shown."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from threadline.app import catalogue
from threadline.engine.engine import Engine, Surroundings
from threadline.engine.folding.person import PERSON
from threadline.engine.folding.states import PackedDict
from threadline.engine.machine import memory_bytes
from threadline.engine.reading.lookup import Lookup
from threadline.engine.recording.working_set import people_cache_bytes
from threadline.kernel.store import scan_pages
from threadline.stores.memory import MemoryStore
from threadline.surfaces.http.addresses.gauges import gauges
from threadline.testing.world import World

GB = 1_000_000_000
EVENTS = 4_000
WORLD = World(seed=3, people=2_000, history=EVENTS)
FEW = World(seed=3, people=60, history=EVENTS)
"""People with long histories."""


def recorded(budget: int, events: int = EVENTS, world: World = WORLD) -> Engine:
    surroundings = Surroundings(people_cache_bytes=budget)
    engine = Engine(MemoryStore(), catalogue(), lambda: world.ends_at(EVENTS), surroundings)
    for batch in world.batches(events, 100):
        engine.recorder.record(batch)
    return engine


@pytest.mark.parametrize(("world", "budget"), [(WORLD, 2_000_000), (WORLD, 4_000_000), (FEW, 1_000_000)])
def test_a_full_cache_takes_about_its_budget_of_real_memory_and_never_a_tenth_more(world: World, budget: int) -> None:
    tracemalloc.start()
    try:
        engine = recorded(budget, world=world)
        people = engine.recorder.people_cache.people
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        people.clear()
        gc.collect()
        taken = before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.4 * budget < taken < 1.1 * budget


def test_only_who_folds_has_states_in_parts() -> None:
    engine = recorded(50_000_000, world=FEW)
    cached = engine.recorder.people_cache.people
    ids = [item.key.partition for item in scan_pages(engine.store, PERSON)]
    in_memory = [person for id in ids if (person := cached.peek(id)) is not None]
    assert any(type(state) is PackedDict for person in in_memory for state in person.states)
    lookup = Lookup(engine.store, engine.catalogue)
    looked_up = [person for id in ids if (person := lookup.by_id(id)) is not None]
    assert len(looked_up) >= len(in_memory) > 9
    assert not any(isinstance(state, PackedDict) for person in looked_up for state in person.states)


def test_a_larger_budget_finds_more_people_and_reads_fewer() -> None:
    small, large = recorded(500_000).recorder.people_cache, recorded(50_000_000).recorder.people_cache
    assert large.hits > small.hits
    assert 10 * large.misses < small.misses


def test_metrics_and_doctor_show_the_budget_and_how_often_somebody_was_there() -> None:
    engine = recorded(500_000, 1_000)
    cache, shown = engine.recorder.people_cache, gauges(engine)
    assert [shown[f"people_cache_{name}"][1] for name in ("bytes_max", "hits_total", "misses_total")] == [
        500_000,
        cache.hits,
        cache.misses,
    ]
    [finding] = [finding for finding in engine.doctor.findings(engine.clock()) if finding.what == "cache"]
    assert f"{cache.hits / (cache.hits + cache.misses):.0%} of the people" in finding.seen


@pytest.mark.parametrize(("memory", "budget"), [(GB // 2, 48_000_000), (3 * GB, 62_500_000), (64 * GB, 120_000_000)])
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
