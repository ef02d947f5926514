"""PostgreSQL: several processes on one database beside a hand-written append, and reads while they write."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from typing import Any, NamedTuple

from bench.peers.handwritten_postgres import HandwrittenPostgres
from bench.row import Goal, Row, quantile
from bench.stage import Stage
from bench.threadline_side import Threadline, read_features, read_person
from tests.servers import postgres
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Event
from threadline.testing.world import World

BATCH = 100
WORKERS = 4
FILLED_BATCHES = 200
"""In the database before the clock starts."""
FASTEST = 20_000
"""Events per second that one process cannot exceed: so many are made ready before the clock starts."""
PACED = 1_000.0
"""Events per second beside which reads are measured, by all writing processes together."""
READ_PAUSE_SECONDS = 0.000_5

Opening = Callable[[Any], Any]


class Share(NamedTuple):
    """What one of several processes tells: every so many events are its own, whoever they are about."""

    world: World
    start: int
    number: int
    of: int

    def batches(self, count: int) -> list[list[Event]]:
        """The first so many batches."""
        mine = islice(self.world.events(1 << 62), self.start + self.number, None, self.of)
        return [list(islice(mine, BATCH)) for _ in range(count)]


class Ingest(NamedTuple):
    """How one process ingests: which side, into what, how long and how fast (0: as fast as it can)."""

    opening: Opening
    url: str
    share: Share
    seconds: float
    filled: int = 0
    """Batches before the clock starts."""
    rate: float = 0.0

    def count(self) -> int:
        """Batches that are made ready."""
        return self.filled + round(self.seconds * (self.rate or FASTEST / self.share.of) / BATCH)


def measure(stage: Stage) -> list[Row]:
    """Ingest by one process and by four, each against the peer's, then reads beside ingest."""
    server = postgres.fresh("18")
    try:
        rows = [_ingest(server, stage, 1, None), _ingest(server, stage, WORKERS, Goal("ours", least=3_000))]
        return [*rows, *_reads(server, stage, 0.0), *_reads(server, stage, PACED)]
    finally:
        postgres.end(server)


def _ingest(server: postgres.Server, stage: Stage, workers: int, goal: Goal | None) -> Row:
    url = server.made(f"ingest_{workers}")
    HandwrittenPostgres(url).make()
    rates: dict[Opening, list[float]] = {Threadline: [], HandwrittenPostgres: []}
    start = 0
    # Turns, so that a slow moment of the machine hits both; the second goes on where the first made an end.
    for filled in (FILLED_BATCHES // workers, 0):
        for opening, found in rates.items():
            shares = [Share(stage.world, start, number, workers) for number in range(workers)]
            tasks = [Ingest(opening, url, share, stage.seconds / 2, filled) for share in shares]
            found.append(sum(_together(_write, tasks)))
        start += BATCH * sum(task.count() for task in tasks)
    ours, theirs = (sum(found) / len(found) for found in rates.values())
    name = f"PostgreSQL: ingest by {workers} process{'es' * (workers > 1)}, batches of {BATCH}"
    return Row(name, ours, "events/s", theirs, goal, "beside a hand-written append by as many processes")


def _reads(server: postgres.Server, stage: Stage, rate: float) -> Iterator[Row]:
    url = server.made("ingest_1")
    world = stage.world
    # Far behind what was told there already.
    shares = [Share(world, round(2 * FASTEST * stage.seconds), number, WORKERS) for number in range(WORKERS)]
    tasks = [Ingest(Threadline, url, share, stage.seconds, rate=rate / WORKERS) for share in shares]
    *_, found = _together(_write_or_read, [*(tasks if rate else []), (url, world, stage.seconds)])
    for name, latencies in found.items():
        beside = f"{rate:,.0f} events/s by {WORKERS} processes" if rate else "nothing"
        goal, note = Goal("ours", most=10.0), f"{len(latencies):,} reads"
        yield Row(f"PostgreSQL: read {name} beside {beside}, p50", quantile(latencies, 0.5), "ms")
        yield Row(f"PostgreSQL: read {name} beside {beside}, p99", quantile(latencies, 0.99), "ms", None, goal, note)


def _together(work: Callable[[Any, Any], Any], tasks: list[Any]) -> list[Any]:
    """Each task in a process of its own; the clock of all starts when the last is ready."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as shared, context.Pool(len(tasks)) as pool:
        ready = shared.Barrier(len(tasks))
        return [each.get() for each in [pool.apply_async(work, (task, ready)) for task in tasks]]


def _write_or_read(task: Any, ready: Any) -> Any:
    return _write(task, ready) if isinstance(task, Ingest) else _read(*task, ready)


def _write(task: Ingest, ready: Any) -> float:
    """Events per second of this process."""
    side = task.opening(task.url)
    batches = iter(task.share.batches(task.count()))
    for batch in islice(batches, task.filled):
        side.record(batch)
    ready.wait()
    began, count = time.perf_counter(), 0
    for batch in batches:
        if task.rate:
            time.sleep(max(0.0, began + count / task.rate - time.perf_counter()))
        side.record(batch)
        count += len(batch)
        if time.perf_counter() - began > task.seconds:
            break
    seconds = time.perf_counter() - began
    side.close()
    return count / seconds


def _read(url: str, world: World, seconds: float, ready: Any) -> dict[str, list[float]]:
    """Latencies in milliseconds by kind of read."""
    side = Threadline(url)
    source = random.Random(f"{world.seed} readers")
    weights = list(accumulate(1.0 / rank**world.zipf for rank in range(1, world.people + 1)))
    found: dict[str, list[float]] = {"person": [], "features": []}
    ready.wait()
    stop_at = time.perf_counter() + seconds
    while time.perf_counter() < stop_at:
        [number] = source.choices(range(world.people), cum_weights=weights)
        for name, read in (("person", read_person), ("features", read_features)):
            began = time.perf_counter()
            try:
                read(side.engine, f"user-{number:06d}", time.time_ns() // 1_000)
            except NotFound:
                continue  # somebody who has not signed in yet has no user id, and a miss would flatter the mean
            found[name].append((time.perf_counter() - began) * 1_000)
            time.sleep(READ_PAUSE_SECONDS)
    side.close()
    return found
