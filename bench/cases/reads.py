"""Reads in process while ingesting: a whole person, and a feature vector."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from bench.contest import Part, Tape, in_turns
from bench.row import NO_WORSE, Goal, Row, compared, quantiles
from bench.stage import Stage
from bench.threadline_side import Threadline, read_features, read_person
from threadline.kernel.errors import NotFound
from threadline.testing.world import World

BATCH = 100
WARMING = 10_000
"""Events that are taken in before anything is measured: the writer's caches begin empty."""
PAUSE_SECONDS = 0.000_5
"""Between reads, so that one reader does not become the load."""

READS: dict[str, Callable[[Any, str, int], Any]] = {"person": read_person, "features": read_features}
GOALS = {"person": 5.0, "features": 1.0}
AIMS = {"person": 4.0, "features": 1.0}
PACED = 2_000.0
RATES = {"nothing": 0.0, f"{PACED:,.0f} events/s": PACED, "as fast as it can": -1.0}
ROUNDS = 4


class Stretch(NamedTuple):
    """What one stretch found."""

    latencies_ms: dict[str, list[float]]
    events: int
    seconds: float


def measure(stage: Stage) -> list[Row]:
    """The 50th and 99th percentile of each read beside several rates of ingest, beside the earlier commit's."""
    rows = []
    for beside, rate in RATES.items():
        count = round(stage.seconds * (10_000 if rate < 0 else rate) + BATCH)
        start = stage.claim(WARMING + ROUNDS * count) if rate else 0
        parts = {
            tree.name: Part(_stretches, (stage.file(tree), stage.world, start, count, rate, stage.seconds), tree)
            for tree in stage.trees
        }
        results = in_turns(parts, ROUNDS)
        for name in READS:
            rows += _rows(f"read {name} beside {beside}", name, rate, results)
    return rows


def _rows(what: str, name: str, rate: float, results: dict[str, list[Stretch]]) -> list[Row]:
    latencies = {
        tree: [latency for stretch in stretches for latency in stretch.latencies_ms[name]]
        for tree, stretches in results.items()
    }
    taken_in = ", ".join(
        f"{sum(stretch.events for stretch in stretches) / sum(stretch.seconds for stretch in stretches):,.0f}"
        for stretches in results.values()
    )
    note = f"{', '.join(f'{len(reads):,}' for reads in latencies.values())} reads; {taken_in} events/s taken in"
    goal = aim = None
    if rate == PACED:
        goal, aim = Goal("ratio", most=NO_WORSE), Goal("ours", most=AIMS[name])
    elif rate:
        goal = Goal("ours", most=GOALS[name])
    return [
        compared(f"{what}, p50", quantiles(latencies, 0.5), "ms"),
        compared(f"{what}, p99", quantiles(latencies, 0.99), "ms", goal, aim, note),
    ]


def _stretches(path: Path, world: World, start: int, count: int, rate: float, seconds: float) -> Iterator[Any]:
    """Latencies in milliseconds by kind of read, and the events that were taken in meanwhile."""
    side, tape = Threadline(path), Tape(world)
    if rate:
        tape.skip_to(start)
        for batch in tape.batches(WARMING, BATCH):
            side.record(batch)
    yield None
    for number in itertools.count():
        batches = list(tape.batches(count, BATCH)) if rate else []
        stop, before = threading.Event(), side.count()
        writer = threading.Thread(target=_write, args=(side, batches, rate, stop))
        started_at = time.perf_counter()
        writer.start()
        results = _read(side, world, f"{world.seed} readers {number}", seconds)
        stop.set()
        writer.join()
        yield Stretch(results, side.count() - before, time.perf_counter() - started_at)


def _write(side: Threadline, batches: list[Any], rate: float, stop: threading.Event) -> None:
    started_at = time.perf_counter()
    for number, batch in enumerate(batches):
        if rate > 0:
            stop.wait(max(0.0, started_at + number * BATCH / rate - time.perf_counter()))
        if stop.is_set():
            return
        side.record(batch)


def _read(side: Threadline, world: World, seed: str, seconds: float) -> dict[str, list[float]]:
    source = random.Random(seed)
    weights = list(accumulate(1.0 / rank**world.zipf for rank in range(1, world.people + 1)))
    results: dict[str, list[float]] = {name: [] for name in READS}
    stop_at = time.perf_counter() + seconds
    while time.perf_counter() < stop_at:
        [number] = source.choices(range(world.people), cum_weights=weights)
        for name, read in READS.items():
            started_at = time.perf_counter()
            try:
                read(side.engine, f"user-{number:06d}", time.time_ns() // 1_000)
            except NotFound:
                continue  # somebody who has not signed in yet has no user id, and a miss would flatter the mean
            results[name].append((time.perf_counter() - started_at) * 1_000)
            time.sleep(PAUSE_SECONDS)
    return results
