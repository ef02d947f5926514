"""Over HTTP, one server process: batches, single events from many clients, and reads beside ingest."""

from __future__ import annotations

import json
import random
from itertools import accumulate
from typing import NamedTuple

from bench.contest import in_child
from bench.load import Load, Measured, batch_requests, drive, get, single_requests
from bench.row import Goal, Row, quantile
from bench.server import Server
from bench.stage import Stage
from bench.threadline_side import READ_TOKEN, WRITE_KEY, person_path
from threadline.testing.world import World

BATCH = 100
CLIENTS = 32
WARM_SECONDS = 1.0
READS_A_SECOND = 20.0
"""Of people as active as the world makes them: far from what a core answers, or the rows would tell of the queue."""


class Plan(NamedTuple):
    """What the load process builds and sends."""

    start: int = 0
    batches: int = 0
    """Requests of `BATCH` events; 0: none."""
    batch_connections: int = 4
    batch_rate: float = 0.0
    singles: int = 0
    readers: int = 0
    read_rate: float = 0.0


def measure(stage: Stage) -> list[Row]:
    """Rows of the three loads, one after the other on one server."""
    seconds = stage.seconds
    with Server(stage.file()) as server:
        run_load(stage, server, Plan(batches=100, batch_rate=50), WARM_SECONDS)
        batches = run_load(stage, server, Plan(batches=round(seconds * 400)), seconds)["batches"]
        singles = run_load(stage, server, Plan(singles=round(seconds * 8_000)), seconds)["singles"]
        rows = [
            *_rate_rows(f"HTTP ingest, batches of {BATCH}", batches, BATCH, least=6_000),
            *_rate_rows(f"HTTP ingest, single events, {CLIENTS} clients", singles, 1, least=1_500, p99_most=50.0),
        ]
        for name, rate in {"nothing": 0.0, "3,000 events/s": 30.0, "as fast as it can": -1.0}.items():
            count = 0 if not rate else round(seconds * (rate if rate > 0 else 400)) + 1
            plan = Plan(batches=count, batch_rate=max(rate, 0.0), readers=2, read_rate=READS_A_SECOND)
            found = run_load(stage, server, plan, seconds)
            taken_in = found["batches"].answered * BATCH / seconds if rate else 0.0
            rows += _read_rows(name, found["reads"], taken_in, bool(rate))
    return rows


def run_load(stage: Stage, server: Server, plan: Plan, seconds: float) -> dict[str, Measured]:
    """Put a load on the server from another process; any answer but success ends the benchmark."""
    start = stage.claim(plan.batches * BATCH + plan.singles)
    found: dict[str, Measured] = in_child(_send, server.port, stage.world, plan._replace(start=start), seconds)
    for name, measured in found.items():
        assert not measured.failed, f"{name}: {dict(measured.statuses)}"
    return found


def _send(port: int, world: World, plan: Plan, seconds: float) -> dict[str, Measured]:
    """Build every request, then send. Runs in the load process."""
    loads = []
    if plan.batches:
        requests = batch_requests(world, plan.start, plan.batches * BATCH, BATCH, WRITE_KEY)
        loads.append(Load(name="batches", requests=requests, connections=plan.batch_connections, rate=plan.batch_rate))
    if plan.singles:
        requests = single_requests(world, plan.start, plan.singles, WRITE_KEY)
        loads.append(Load(name="singles", requests=requests, connections=CLIENTS))
    if plan.readers:
        reads = _reads(world, 5_000)
        loads.append(Load(name="reads", requests=reads, connections=plan.readers, rate=plan.read_rate, loop=True))
    found = drive(port, loads, seconds)
    for name in {"batches", "singles"} & set(found):
        _check_accepted(found[name], BATCH if name == "batches" else 1)
    for measured in found.values():
        measured.bodies.clear()  # they have been looked at, and need not travel back
    return found


def _check_accepted(measured: Measured, size: int) -> None:
    """Every event of every answered request was new and was taken: a 200 that rejects must not count as speed."""
    for body in measured.bodies:
        answer = json.loads(body)
        assert answer["accepted"] == size, f"{answer} for {size} new events"


def _reads(world: World, count: int) -> list[bytes]:
    # The people who act most are the ones who are read most; the first of them have all signed in.
    source = random.Random(f"{world.seed} readers")
    people = max(1, min(1_000, world.people // 100, world.history // 500))
    weights = list(accumulate(1.0 / rank**world.zipf for rank in range(1, people + 1)))
    numbers = source.choices(range(people), cum_weights=weights, k=count)
    return [get(person_path(f"user-{number:06d}"), READ_TOKEN) for number in numbers]


def _rate_rows(name: str, measured: Measured, size: int, least: float, p99_most: float | None = None) -> list[Row]:
    rate = measured.answered * size / measured.seconds
    median, high = quantile(measured.latencies_ms, 0.5), quantile(measured.latencies_ms, 0.99)
    note = f"{measured.answered:,} requests in {measured.seconds:.1f} s"
    return [
        Row(name, rate, "events/s", goal=Goal("ours", least=least), note=note),
        Row(f"{name}, p50", median, "ms"),
        Row(f"{name}, p99", high, "ms", goal=None if p99_most is None else Goal("ours", most=p99_most)),
    ]


def _read_rows(beside: str, measured: Measured, taken_in: float, goal: bool) -> list[Row]:
    note = f"{measured.answered:,} reads; {taken_in:,.0f} events/s taken in"
    asked = Goal("ours", most=10.0) if goal else None
    return [
        Row(f"HTTP read of a person beside {beside}, p50", quantile(measured.latencies_ms, 0.5), "ms"),
        Row(
            f"HTTP read of a person beside {beside}, p99",
            quantile(measured.latencies_ms, 0.99),
            "ms",
            goal=asked,
            note=note,
        ),
    ]
