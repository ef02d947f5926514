"""What each accelerator saves: the same work with it and without it, turn by turn, in processes of their own.

Alone: ``make bench ARGS="--only accelerators --events 20000 --people 2000"``. An accelerator whose row stays below its
goal is not worth its code.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from bench.contest import FILL_BATCH, Part, Tape, in_turns
from bench.row import Goal, Row, quantile
from bench.stage import Stage
from bench.threadline_side import Threadline, read_features
from bench.without import SWITCHES
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import HOUR, MINUTE
from threadline.testing.world import World

ROUNDS = 6
BATCH = 100
HISTORY_MAX = 50_000
"""Events in a file before the clock starts."""
WRITTEN = 2_000
"""Events of one turn."""
READS_MAX = 2_000
BUSY_EVENTS = 5_000
"""Of the person whom the reads ahead of the clock are about."""
RULES = 200
SAVES = Goal("ratio", most=0.9)
"""What an accelerator must save where it matters most: a tenth."""

DEFINITIONS = (
    "rules:\n"
    + "".join(
        f"  rule-{number}:\n    version: 1\n    conditions:\n      all:\n"
        f"        - {{field: event.properties.total, greater_than: {900 + number}}}\n"
        f"        - {{field: event.properties.currency, not_equals: X{number}}}\n"
        "    actions: [{store_decision: {result: approve}}]\n"
        for number in range(RULES)
    )
    + "rule_sets: {orders: {events: [purchase_completed, product_viewed], rules: ["
    + ", ".join(f"rule-{number}" for number in range(RULES))
    + "]}}\n"
)


class Work(NamedTuple):
    """One kind of work that accelerators are measured at."""

    name: str
    unit: str
    stretches: Callable[[str, Path, World], Iterator[Any]]
    of: tuple[str, ...]
    """The accelerators that it shows."""


def measure(stage: Stage) -> list[Row]:
    """A row for each accelerator at the work that it is there for; ``theirs`` is without it."""
    world = replace(stage.world, history=min(stage.world.history, HISTORY_MAX))
    # In a folder of its own: what is beside a store shapes it.
    folder = stage.folder / "accelerators"
    folder.mkdir()
    (folder / "threadline.yaml").write_text(DEFINITIONS)
    rows = []
    for work in WORKS:
        names = ("", *work.of)
        parts = {name: Part(work.stretches, (name, _file(folder, work, name), world)) for name in names}
        results = {name: median(found) for name, found in in_turns(parts, ROUNDS).items()}
        rows += [
            Row(f"{name}: {work.name}", results[""], work.unit, results[name], SAVES, "theirs: without it")
            for name in work.of
        ]
    return rows


def _file(folder: Path, work: Work, name: str) -> Path:
    return folder / f"{work.name} {name or 'all'}.db".replace(" ", "-").replace("'", "")


def _opened(name: str, path: Path) -> Threadline:
    SWITCHES[name]()
    return Threadline(path)


def _filled(name: str, path: Path, world: World) -> tuple[Threadline, Tape]:
    side, tape = _opened(name, path), Tape(world)
    side.fill(tape.batches(world.history, FILL_BATCH))
    return side, tape


def _writes(name: str, path: Path, world: World) -> Iterator[Any]:
    """CPU of an event in batches of `BATCH`, microseconds: the clock on the wall shows the neighbours as well."""
    return _written(name, path, world, lambda: time.process_time() * 1e6)


def _bytes(name: str, path: Path, world: World) -> Iterator[Any]:
    """Kilobytes that an event in batches of `BATCH` sends to the disk."""
    process = psutil.Process()
    return _written(name, path, world, lambda: process.io_counters().write_bytes / 1e3)


def _written(name: str, path: Path, world: World, gauge: Callable[[], float]) -> Iterator[Any]:
    side, tape = _filled(name, path, world)
    yield None
    while True:
        batches = list(tape.batches(WRITTEN, BATCH))
        before = gauge()
        for batch in batches:
            side.record(batch)
        yield (gauge() - before) / WRITTEN


def _reads(name: str, path: Path, world: World) -> Iterator[Any]:
    """CPU of reading a feature vector, microseconds, of people drawn as the world draws them."""
    side, _ = _filled(name, path, world)
    yield None
    for number in itertools.count():
        users = list(_drawn(world, f"{world.seed} {number}", READS_MAX))
        before = time.process_time()
        done = sum(_read(side, user) for user in users)
        yield (time.process_time() - before) / done * 1e6


def _reads_beside_a_writer(name: str, path: Path, world: World) -> Iterator[Any]:
    """Milliseconds of a read beside a writer that never rests, at the 95th percentile."""
    side, tape = _filled(name, path, world)
    yield None
    for number in itertools.count():
        batches, stop = list(tape.batches(10 * WRITTEN, BATCH)), threading.Event()

        def write(batches: list[list[Event]] = batches, stop: threading.Event = stop) -> None:
            for batch in batches:
                if stop.is_set():
                    return
                side.record(batch)

        writer = threading.Thread(target=write)
        writer.start()
        latencies: list[float] = []
        for user in _drawn(world, f"{world.seed} beside {number}", READS_MAX // 10):
            started_at = time.perf_counter()
            if _read(side, user):
                latencies.append((time.perf_counter() - started_at) * 1_000)
            time.sleep(0.000_5)
        stop.set()
        writer.join()
        yield quantile(latencies, 0.95)


def _reads_ahead(name: str, path: Path, world: World) -> Iterator[Any]:
    """CPU of an event and a read of a busy person who has an event ahead of the clock, microseconds."""
    side = _opened(name, path)
    now = time.time_ns() // 1_000
    events = [_view(number, now - HOUR + number) for number in range(BUSY_EVENTS)]
    side.fill(events[start : start + FILL_BATCH] for start in range(0, BUSY_EVENTS, FILL_BATCH))
    side.record([_view(BUSY_EVENTS, now + 10 * MINUTE)])
    yield None
    for number in itertools.count(BUSY_EVENTS + 1):
        before = time.process_time()
        for part in range(20):
            side.record([_view(number * 100 + part, time.time_ns() // 1_000)])
            _read(side, "busy")
        yield (time.process_time() - before) / 20 * 1e6


def _view(number: int, at: int) -> Event:
    busy = (Identifier("user_id", "busy"),)
    properties = {"product_id": f"p{number % 50}", "price": 10}
    return Event(type="product_viewed", identifiers=busy, occurred_at=at, key=f"view {number}", properties=properties)


def _drawn(world: World, seed: str, count: int) -> Iterator[str]:
    weights = list(itertools.accumulate(1.0 / rank**world.zipf for rank in range(1, world.people + 1)))
    for number in random.Random(seed).choices(range(world.people), cum_weights=weights, k=count):
        yield f"user-{number:06d}"


def _read(side: Threadline, user: str) -> bool:
    try:
        read_features(side.engine, user, time.time_ns() // 1_000)
    except NotFound:
        return False  # somebody who has not signed in yet
    return True


WORKS = (
    Work(
        "write batches of 100",
        "µs",
        _writes,
        (
            "compiled folds",
            "compiled rules",
            "snapshot and tail",
            "deferred garbage collection",
            "the recorder's people",
            "all bounded caches",
        ),
    ),
    Work("write batches of 100, to disk", "KB", _bytes, ("index from a tail", "snapshot and tail")),
    Work(
        "read features",
        "µs",
        _reads,
        ("states packed until first use", "the readers' people", "recent events in memory"),
    ),
    Work("read features beside a busy writer, p95", "ms", _reads_beside_a_writer, ("reader priority",)),
    Work("write and read somebody with an event ahead of the clock", "µs", _reads_ahead, ("provisional states",)),
)
