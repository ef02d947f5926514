"""The canonical dump: the same events in any order, in calls of any size, some twice, through kills, on every store."""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import signal
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

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
KILLS = 4
MEMORY = "memory:"


class Dumped(NamedTuple):
    """How long it took to record the events and to dump what is known then, and what came out."""

    recorded_seconds: float
    dumped_seconds: float
    kills: int
    digest: str


def measure(stage: Stage) -> list[Row]:
    """Seconds from the first event to the last line; the lines must be the same."""
    server = postgres.fresh("18")
    try:
        urls = {"memory": MEMORY, "SQLite": str(stage.folder / "dump.db"), "PostgreSQL": server.made("dump")}
        rows = _rows(live_world(stage.world.seed, EVENTS, EVENTS // 10), urls)
    finally:
        postgres.end(server)
    urls = {"memory": MEMORY, "DynamoDB": ministack().made(stage.folder)}
    return rows + _rows(live_world(stage.world.seed, FEWER, FEWER // 10), urls)


def _rows(world: World, urls: dict[str, str]) -> list[Row]:
    rows, digests = list[Row](), set[str]()
    for name, url in urls.items():
        seed = f"{world.seed} {name}"
        done = _in_memory(world, url, seed) if url == MEMORY else _through_kills(world, url, seed)
        digests.add(done.digest)
        parts = f"recording {done.recorded_seconds:.0f} s, the dump {done.dumped_seconds:.0f} s"
        seconds = done.recorded_seconds + done.dumped_seconds
        what = f"canonical dump of {world.history:,} events, {name}"
        rows.append(Row(what, seconds, "s", goal=Goal("ours", most=SECONDS_MAX), note=f"{parts}; {done.kills} kills"))
    assert len(digests) == 1, f"the stores do not say the same: {digests}"
    return rows


def _in_memory(world: World, url: str, seed: str) -> Dumped:
    """Nothing of this store outlives its process, so it is never killed."""
    return in_child(_recorded_and_dumped, world, url, seed)


def _recorded_and_dumped(world: World, url: str, seed: str) -> Dumped:
    side, started_at = _opened(world, url), time.perf_counter()
    for _ in _calls(side, world, seed, 0):
        pass
    return _dumped(side, time.perf_counter() - started_at, 0)


def _through_kills(world: World, url: str, seed: str) -> Dumped:
    """Record in processes that are killed, each of which goes on with the call that was last known to be done."""
    spawning = multiprocessing.get_context("spawn")
    done = spawning.Value("q", 0)
    count, started_at = round(world.history * (1 + TWICE)), time.perf_counter()
    for kill in range(1, KILLS + 2):
        process = spawning.Process(target=_record, args=(world, url, seed, done))
        process.start()
        while process.is_alive() and (kill > KILLS or done.value < count * kill // (KILLS + 1)):
            process.join(0.01)
        if kill <= KILLS:
            process.kill()
        process.join()
        assert process.exitcode == (-signal.SIGKILL if kill <= KILLS else 0), f"it ended with {process.exitcode}"
    seconds = time.perf_counter() - started_at
    return in_child(_dump, world, url, seconds)


def _record(world: World, url: str, seed: str, done: Any) -> None:
    side = _opened(world, url)
    for at in _calls(side, world, seed, done.value):
        done.value = at
    side.close()


def _calls(side: Threadline, world: World, seed: str, start: int) -> Iterator[int]:
    """Record shuffled and with repetitions, in an order of this seed's own; yields how far each call has come."""
    source, events = random.Random(seed), list(world.events(world.history))
    events += source.sample(events, round(TWICE * len(events)))
    source.shuffle(events)
    while start < len(events):
        size = source.randint(1, CALL_MAX)
        side.record(events[start : start + size])
        start += size
        yield start


def _opened(world: World, url: str) -> Threadline:
    """With a clock that stands still: how late an event becomes known is part of what is known.

    By the machine's clock the stores, which come one after the other, would disagree on the events of 32 days ago.
    """
    instant = world.ends_at(world.history)
    return Threadline(url, lambda: instant)


def _dump(world: World, url: str, recorded_seconds: float) -> Dumped:
    return _dumped(_opened(world, url), recorded_seconds, KILLS)


def _dumped(side: Threadline, recorded_seconds: float, kills: int) -> Dumped:
    started_at = time.perf_counter()
    lines = canonical_dump(side)
    seconds = time.perf_counter() - started_at
    side.close()
    return Dumped(recorded_seconds, seconds, kills, hashlib.sha256("\n".join(lines).encode()).hexdigest())
