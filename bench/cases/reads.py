"""Reads in process while ingesting: a whole person, and a feature vector."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench.contest import Tape, in_child
from bench.row import Goal, Row, quantile
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
RATES = {"nothing": 0.0, "2,000 events/s": 2_000.0, "as fast as it can": -1.0}


def measure(stage: Stage) -> list[Row]:
    """The 50th and 99th percentile of each read beside several rates of ingest."""
    rows = []
    for beside, rate in RATES.items():
        count = WARMING + round(stage.seconds * (40_000 if rate < 0 else rate) + BATCH)
        start = stage.claim(count) if rate else 0
        found, recorded = in_child(_read_beside, stage.file(), stage.world, start, count, rate, stage.seconds)
        for name, latencies in found.items():
            note = f"{len(latencies):,} reads; {recorded:,.0f} events/s taken in"
            goal = Goal("ours", most=GOALS[name]) if rate else None
            rows.append(Row(f"read {name} beside {beside}, p50", quantile(latencies, 0.5), "ms"))
            rows.append(Row(f"read {name} beside {beside}, p99", quantile(latencies, 0.99), "ms", goal=goal, note=note))
    return rows


def _read_beside(
    path: Path, world: World, start: int, count: int, rate: float, seconds: float
) -> tuple[dict[str, list[float]], float]:
    """Latencies in milliseconds by kind of read, and the events per second that were taken in meanwhile."""
    side, stop = Threadline(path), threading.Event()
    batches = []
    if rate:
        tape = Tape(world)
        tape.skip_to(start)
        for batch in tape.batches(WARMING, BATCH):
            side.record(batch)
        batches = list(tape.batches(count - WARMING, BATCH))
    warm = side.count()
    writer = threading.Thread(target=_write, args=(side, batches, rate, stop))
    started_at = time.perf_counter()
    writer.start()
    found = _read(side, world, seconds)
    stop.set()
    writer.join()
    recorded = (side.count() - warm) / (time.perf_counter() - started_at)
    side.close()
    return found, recorded


def _write(side: Threadline, batches: list[Any], rate: float, stop: threading.Event) -> None:
    started_at = time.perf_counter()
    for number, batch in enumerate(batches):
        if rate > 0:
            stop.wait(max(0.0, started_at + number * BATCH / rate - time.perf_counter()))
        if stop.is_set():
            return
        side.record(batch)


def _read(side: Threadline, world: World, seconds: float) -> dict[str, list[float]]:
    source = random.Random(f"{world.seed} readers")
    weights = list(accumulate(1.0 / rank**world.zipf for rank in range(1, world.people + 1)))
    found: dict[str, list[float]] = {name: [] for name in READS}
    stop_at = time.perf_counter() + seconds
    while time.perf_counter() < stop_at:
        [number] = source.choices(range(world.people), cum_weights=weights)
        for name, read in READS.items():
            started_at = time.perf_counter()
            try:
                read(side.engine, f"user-{number:06d}", time.time_ns() // 1_000)
            except NotFound:
                continue  # somebody who has not signed in yet has no user id, and a miss would flatter the mean
            found[name].append((time.perf_counter() - started_at) * 1_000)
            time.sleep(PAUSE_SECONDS)
    return found
