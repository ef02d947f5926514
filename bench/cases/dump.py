"""The canonical dump: the same events in any order, in calls of any size, some of them twice, on every store."""

from __future__ import annotations

import hashlib
import random
import time
from typing import NamedTuple

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage, live_world
from bench.threadline_side import Threadline, canonical_dump
from tests.servers import postgres
from tests.servers.dynamodb import ministack
from threadline.testing.world import World

EVENTS, FEWER = 100_000, 10_000
"""The smaller number is for DynamoDB, whose emulator is slow."""
TWICE = 0.05
CALL_MAX = 500
SECONDS_MAX = 300.0


class Dumped(NamedTuple):
    """How long it took to record the events and to dump what is known then, and what came out."""

    recorded_seconds: float
    dumped_seconds: float
    digest: str


def measure(stage: Stage) -> list[Row]:
    """Seconds from the first event to the last line; the lines must be the same."""
    server = postgres.fresh("18")
    try:
        urls = {"memory": "memory:", "SQLite": str(stage.folder / "dump.db"), "PostgreSQL": server.made("dump")}
        rows = _rows(live_world(stage.world.seed, EVENTS, EVENTS // 10), urls)
    finally:
        postgres.end(server)
    urls = {"memory": "memory:", "DynamoDB": ministack().made(stage.folder)}
    return rows + _rows(live_world(stage.world.seed, FEWER, FEWER // 10), urls)


def _rows(world: World, urls: dict[str, str]) -> list[Row]:
    rows, digests = list[Row](), set[str]()
    for name, url in urls.items():
        done: Dumped = in_child(_dump, world, url, f"{world.seed} {name}")
        digests.add(done.digest)
        note = f"recording {done.recorded_seconds:.0f} s, the dump {done.dumped_seconds:.0f} s"
        seconds = done.recorded_seconds + done.dumped_seconds
        what = f"canonical dump of {world.history:,} events, {name}"
        rows.append(Row(what, seconds, "s", goal=Goal("ours", most=SECONDS_MAX), note=note))
    assert len(digests) == 1, f"the stores do not say the same: {digests}"
    return rows


def _dump(world: World, url: str, seed: str) -> Dumped:
    """Record shuffled and with repetitions, in an order of this seed's own."""
    source, events = random.Random(seed), list(world.events(world.history))
    events += source.sample(events, round(TWICE * len(events)))
    source.shuffle(events)
    side = Threadline(url)
    started_at, at = time.perf_counter(), 0
    while at < len(events):
        size = source.randint(1, CALL_MAX)
        side.record(events[at : at + size])
        at += size
    recorded_at = time.perf_counter()
    lines = canonical_dump(side)
    dumped_at = time.perf_counter()
    side.close()
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return Dumped(recorded_at - started_at, dumped_at - recorded_at, digest)
