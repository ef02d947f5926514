"""Over HTTP, one server process: batches, single events from many clients, and reads beside ingest."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import accumulate
from typing import NamedTuple

from bench.contest import in_child
from bench.load import Load, Measured, batch_requests, drive, get, single_requests
from bench.row import Goal, Row, compared, quantiles
from bench.server import READ_TOKEN, WRITE_KEY, Server, unlimited
from bench.stage import Stage
from threadline.testing.world import World

BATCH = 100
CLIENTS = 32
FASTEST = 200
"""Requests of `BATCH` events per second that no server exceeds: so many are made ready."""
WARM_SECONDS = 1.0
ROUNDS, READ_ROUNDS = 2, 3
"""Stretches of each server; reads need more, because few are asked in a second."""
BATCHES_GOAL, BATCHES_AIM = Goal("ratio", least=1.3), Goal("ratio", least=2.0)
READS_A_SECOND = 20.0
"""Of people as active as the world makes them: far from what a core answers, or the rows would tell of the queue."""


class Plan(NamedTuple):
    """What the load process builds and sends in one stretch."""

    start: int = 0
    batches: int = 0
    """Requests of `BATCH` events; 0: none."""
    batch_connections: int = 4
    batch_rate: float = 0.0
    singles: int = 0
    readers: int = 0
    read_rate: float = 0.0


Found = dict[str, dict[str, Measured]]
"""What came back, by name of the load and by name of the tree."""


def measure(stage: Stage) -> list[Row]:
    """Rows of the three loads, one after the other, on our server and the earlier commit's turn by turn."""
    seconds = stage.seconds
    with ExitStack() as stack:
        servers = {
            tree.name: stack.enter_context(Server(stage.file(tree), tree, **unlimited(tree))) for tree in stage.trees
        }

        def run(plan: Plan, rounds: int = ROUNDS) -> Found:
            return run_load(stage, servers, plan, seconds, rounds)

        run_load(stage, servers, Plan(batches=100, batch_rate=50), WARM_SECONDS)
        batches = run(Plan(batches=round(seconds * FASTEST)))["batches"]
        singles = run(Plan(singles=round(seconds * 8_000)))["singles"]
        rows = [
            *_rate_rows(f"HTTP ingest, batches of {BATCH}", batches, BATCH, BATCHES_GOAL, BATCHES_AIM),
            *_rate_rows(
                f"HTTP ingest, single events, {CLIENTS} clients", singles, 1, Goal("ours", least=1_500), p99_most=50.0
            ),
        ]
        for name, rate in {"nothing": 0.0, "3,000 events/s": 30.0, "as fast as it can": -1.0}.items():
            count = 0 if not rate else round(seconds * (rate if rate > 0 else FASTEST)) + 1
            plan = Plan(batches=count, batch_rate=max(rate, 0.0), readers=2, read_rate=READS_A_SECOND)
            rows += _read_rows(name, run(plan, READ_ROUNDS), rate)
    return rows


def run_load(stage: Stage, servers: Mapping[str, Server], plan: Plan, seconds: float, rounds: int = 1) -> Found:
    """Put a load on each server in turn from another process; any answer but success ends the benchmark.

    All get the same events. So many rounds, each of so many seconds and with events of its own.
    """
    start = stage.claim(rounds * (plan.batches * BATCH + plan.singles))
    ports = {name: server.port for name, server in servers.items()}
    results: Found = in_child(_send, ports, stage.world, plan._replace(start=start), seconds, rounds)
    for load, by_tree in results.items():
        for name, measured in by_tree.items():
            assert not measured.failed, f"{load}, {name}: {dict(measured.statuses)}"
    return results


def _send(ports: dict[str, int], world: World, plan: Plan, seconds: float, rounds: int) -> Found:
    """Build every request, then send. Runs in the load process."""
    stretches = [_loads(world, plan, number) for number in range(rounds)]
    results: Found = {load.name: {name: Measured() for name in ports} for load in stretches[0]}
    for loads in stretches:
        for name, port in ports.items():
            for load, measured in drive(port, loads, seconds).items():
                if load in {"batches", "singles"}:
                    _check_accepted(measured, BATCH if load == "batches" else 1)
                measured.bodies.clear()  # they have been looked at, and need not travel back
                results[load][name].add(measured)
    return results


def _loads(world: World, plan: Plan, number: int) -> list[Load]:
    loads = []
    if plan.batches:
        count = plan.batches * BATCH
        requests = batch_requests(world, plan.start + number * count, count, BATCH, WRITE_KEY)
        loads.append(Load(name="batches", requests=requests, connections=plan.batch_connections, rate=plan.batch_rate))
    if plan.singles:
        requests = single_requests(world, plan.start + number * plan.singles, plan.singles, WRITE_KEY)
        loads.append(Load(name="singles", requests=requests, connections=CLIENTS))
    if plan.readers:
        reads = _reads(world, 5_000)
        loads.append(Load(name="reads", requests=reads, connections=plan.readers, rate=plan.read_rate, loop=True))
    return loads


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
    return [get(f"/v1/people/user_id:user-{number:06d}", READ_TOKEN) for number in numbers]


def _rate_rows(
    name: str,
    results: dict[str, Measured],
    size: int,
    goal: Goal,
    aim: Goal | None = None,
    p99_most: float | None = None,
) -> list[Row]:
    rates = {tree: measured.answered * size / measured.seconds for tree, measured in results.items()}
    note = ", ".join(f"{measured.answered:,} requests in {measured.seconds:.1f} s" for measured in results.values())
    latencies = {tree: measured.latencies_ms for tree, measured in results.items()}
    most = None if p99_most is None else Goal("ours", most=p99_most)
    return [
        compared(name, rates, "events/s", goal, aim, note),
        compared(f"{name}, p50", quantiles(latencies, 0.5), "ms"),
        compared(f"{name}, p99", quantiles(latencies, 0.99), "ms", most),
    ]


def _read_rows(beside: str, results: Found, rate: float) -> list[Row]:
    latencies = {tree: measured.latencies_ms for tree, measured in results["reads"].items()}
    writes = results["batches"].values() if rate else ()
    counts = ", ".join(f"{len(values):,}" for values in latencies.values())
    rates = ", ".join(f"{measured.answered * BATCH / measured.seconds:,.0f}" for measured in writes)
    note = f"{counts} reads; {rates or 0} events/s taken in"
    goal = Goal("ours", most=16.0 if rate > 0 else 10.0) if rate else None
    aim = Goal("ours", most=10.0) if rate > 0 else None
    what = f"HTTP read of a person beside {beside}"
    return [
        compared(f"{what}, p50", quantiles(latencies, 0.5), "ms"),
        compared(f"{what}, p99", quantiles(latencies, 0.99), "ms", goal, aim, note),
    ]
