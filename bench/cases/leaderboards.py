"""Leaderboards of a million people: rank, neighbours, the first hundred, and what a change of score costs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from bench.contest import in_child
from bench.row import Goal, Row, quantile
from bench.stage import Stage
from bench.threadline_side import WORKSPACE
from threadline.app import open_engine
from threadline.engine.context import Context
from threadline.kernel.event import Event, Identifier
from threadline.kernel.fixed import SCALE
from threadline.kernel.ranking import TABLE, Place, board_of, row_of
from threadline.kernel.store import Batch, Key, Put, scan_pages
from threadline.testing.world import World

PEOPLE = 1_000_000
LIVING = 20_000
"""Those who have events, a state and everything else. Of the others only the rows are there: a board reads no more of
anybody, and recording a million people takes longer than all other cases."""
RANK = "rank of a person"
BATCH = 100
ROUNDS = 40
BOARDS = "leaderboards: {points: {score: points.earned, periods: [week, all]}}\n"


def measure(stage: Stage) -> list[Row]:
    """Percentiles of each question, and events per second with and without boards, turn by turn."""
    found: dict[str, Any] = in_child(_measure, stage.world, stage.folder / "boards", stage.seconds)
    first, with_boards, without, megabytes = (found.pop(name) for name in ("first", "with", "without", "megabytes"))
    rows = [Row(f"first question about a board of {PEOPLE:,}, which reads it", first, "s")]
    rows.append(Row("memory for its counts", megabytes, "MB"))
    for name, latencies in found.items():
        goal = Goal("ours", most=5.0) if name == RANK else None
        rows.append(Row(f"{name}, p50", quantile(latencies, 0.5), "ms"))
        rows.append(Row(f"{name}, p99", quantile(latencies, 0.99), "ms", goal=goal, note=f"{len(latencies):,} asked"))
    note = "theirs: the same engine without boards; every event earns points and moves two rows"
    rows.append(Row("events that change a score, batches of 100", with_boards, "events/s", theirs=without, note=note))
    return rows


def _measure(world: World, folder: Path, seconds: float) -> dict[str, Any]:
    folder.mkdir()
    definitions = folder / "boards.yaml"
    definitions.write_text(BOARDS)
    engine = open_engine(folder / "boards.db", definitions=definitions)
    plain = open_engine(folder / "plain.db")
    source = random.Random(f"{world.seed} boards")
    for side in (engine, plain):
        for batch in _told(source, range(LIVING), "first"):
            side.recorder.record(batch)
    _fill(engine, source)
    found = _ask(engine, source, seconds)
    taken = {"with": 0.0, "without": 0.0}
    for number in range(ROUNDS):
        batches = list(_told(source, source.sample(range(LIVING), 5 * BATCH), f"round {number}"))
        for name, side in (("with", engine), ("without", plain)):
            started_at = time.perf_counter()
            for batch in batches:
                side.recorder.record(batch)
            taken[name] += time.perf_counter() - started_at
    for name, spent in taken.items():
        found[name] = ROUNDS * 5 * BATCH / spent
    engine.close()
    plain.close()
    return found


def _told(source: random.Random, people: Any, key: str) -> Iterator[list[Event]]:
    now = time.time_ns() // 1_000
    events = [
        Event(
            type=source.choice(("tool_used", "result_shared")),
            occurred_at=now,
            key=f"{key}/{number}",
            identifiers=(Identifier("user_id", f"user-{number}"),),
        )
        for number in people
    ]
    for start in range(0, len(events), BATCH):
        yield events[start : start + BATCH]


def _fill(engine: Any, source: random.Random) -> None:
    """The rest of the million, on the boards of those who live, with scores up to 5,000."""
    boards = {board_of(item.key.partition) for item in scan_pages(engine.store, TABLE)}
    for _ in range(0, PEOPLE - LIVING, 1_000):
        batches = []
        for _ in range(1_000):
            person, score = f"{source.getrandbits(128):032x}", source.randrange(1, 5_000) * SCALE
            rows = [row_of(board, Place(score, person, None)) for board in boards]
            writes = [Put(Key(row.table, row.partition, row.sort), b"\x00") for row in rows]
            batches.append(Batch(writes=writes))
        engine.store.commit(batches)


def _ask(engine: Any, source: random.Random, seconds: float) -> dict[str, Any]:
    operations = {operation.name: operation for operation in engine.catalogue.operations}

    def run(operation: str, **params: Any) -> Any:
        context = Context(engine, WORKSPACE, engine.clock())
        declared = operations[operation]
        return declared.run(context, declared.params(**params))

    def standing(around: int) -> Any:
        who = f"user_id:user-{source.randrange(LIVING)}"
        return run("leaderboards_standing", id=who, name="points", period="week", around=around)

    questions: dict[str, Callable[[], Any]] = {
        RANK: lambda: standing(0),
        "rank and ten neighbours": lambda: standing(5),
        "first hundred": lambda: run("leaderboards_top", name="points", period="week", limit=100),
    }
    before = psutil.Process().memory_info().rss
    started_at = time.perf_counter()
    assert standing(0).total == PEOPLE
    found: dict[str, Any] = {"first": time.perf_counter() - started_at}
    found["megabytes"] = max(0.0, (psutil.Process().memory_info().rss - before) / 1e6)
    for name, ask in questions.items():
        latencies = []
        stop_at = time.perf_counter() + seconds / 2
        while time.perf_counter() < stop_at:
            started_at = time.perf_counter()
            ask()
            latencies.append((time.perf_counter() - started_at) * 1_000)
        found[name] = latencies
    return found
