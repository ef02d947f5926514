"""Import of a CSV file by the command line, beside the engine alone with the same events, turn by turn."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench.contest import Part, in_turns
from bench.row import Goal, Row
from bench.stage import Stage
from bench.threadline_side import Threadline
from bench.trees import OURS
from threadline.kernel.event import Event
from threadline.surfaces.importing.rows import BATCH_ROWS
from threadline.testing.world import World

TYPES = ("product_viewed", "purchase_completed", "purchase_abandoned", "purchase_refunded")
"""A shop's export: one file with views and orders of people it knows by user id."""
NUMBERS, JSON = ("price", "total", "position"), ("products",)
TEXTS = (
    "product_id",
    "name",
    "category",
    "currency",
    "order_id",
    "payment_method",
    "product_name",
    "plan",
    "step",
    "reason",
)
BATCH = BATCH_ROWS
"""Events of one call to the engine, as the import makes them."""
ROWS_A_SECOND = 10_000
"""Rows of a part by second of a stretch: starting the command is part of it, and of a real import a small one."""
ROUNDS = 2


def measure(stage: Stage) -> list[Row]:
    """Rows per second from the start of the command to its end, as a share of what the engine alone takes in."""
    count = round(stage.seconds * ROWS_A_SECOND)
    parts = {
        "command": Part(_by_command, (stage.world, stage.folder, count)),
        "engine": Part(_by_engine, (stage.world, stage.folder, count)),
    }
    results = in_turns(parts, ROUNDS)
    ours, theirs = (ROUNDS * count / sum(seconds for seconds, _ in stretches) for stretches in results.values())
    note = (
        f"theirs: the engine alone in calls of {BATCH}; {ROUNDS} files of {count:,} rows into one store; "
        f"without its start the command says {' and '.join(rate for _, rate in results['command'])}"
    )
    goal, aim = Goal("ratio", least=0.7), Goal("ratio", least=0.9)
    return [Row("import of a CSV file by the command line", ours, "rows/s", theirs, goal, note, aim)]


def _by_command(world: World, folder: Path, count: int) -> Iterator[Any]:
    """Seconds for each file, and the rate that the command tells."""
    mapping = folder / "export.yaml"
    properties: dict[str, Any] = {name: name for name in TEXTS}
    properties |= {name: {"column": name, "number": True} for name in NUMBERS}
    properties |= {name: {"column": name, "json": True} for name in JSON}
    declared = {
        "type": {"column": "event"},
        "time": {"column": "at", "format": "unix_us"},
        "user_id": "user",
        "key": ["key"],
        "properties": properties,
    }
    mapping.write_text(json.dumps(declared))  # JSON is YAML
    events = _events(world)
    files = [_write(folder / f"export-{number}.csv", islice(events, count)) for number in range(ROUNDS)]
    # As an installed program has it: without bytecode each start would compile every module.
    environment = OURS.environment() | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(file: Path, store: str, rows: int) -> tuple[float, str]:
        command = [sys.executable, "-m", "threadline", "import", file, "--map", mapping, "--file", folder / store]
        started_at = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started_at
        text = " ".join(done.stdout.split())
        assert f"{rows:,} accepted" in text, done.stdout + done.stderr
        return seconds, text.partition("(")[2].partition(")")[0]

    run(_write(folder / "first.csv", islice(events, 1)), "first.db", 1)
    yield None
    for file in files:
        yield run(file, "import.db", count)


def _by_engine(world: World, folder: Path, count: int) -> Iterator[Any]:
    """The same for the events that these rows say."""
    events = _events(world)
    chunks = [list(islice(events, count)) for _ in range(ROUNDS)]
    side = Threadline(folder / "engine.db")
    yield None
    for chunk in chunks:
        batches = [chunk[at : at + BATCH] for at in range(0, count, BATCH)]
        started_at = time.perf_counter()
        for batch in batches:
            side.record(batch)
        yield time.perf_counter() - started_at, ""
    side.close()


def _events(world: World) -> Iterator[Event]:
    for event in world.events(1 << 62):
        user = event.identifiers[0]
        if event.type in TYPES and user.kind == "user_id":
            yield Event(
                type=event.type,
                identifiers=(user,),
                occurred_at=event.occurred_at,
                key=event.key,
                source="import",
                source_type="external",
                properties=event.properties,
                received_at=time.time_ns() // 1_000,
                sent_time=event.occurred_at,
                historical=True,
            )


def _write(path: Path, events: Iterator[Event]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["event", "at", "user", "key", *TEXTS, *NUMBERS, *JSON])
        for event in events:
            values = event.properties
            assert values.keys() <= {*TEXTS, *NUMBERS, *JSON}, f"no column for {values}"
            cells = [values.get(name, "") for name in (*TEXTS, *NUMBERS)]
            lists = [json.dumps(values[name]) if name in values else "" for name in JSON]
            rows.writerow([event.type, event.occurred_at, event.identifiers[0].value, event.key, *cells, *lists])
    return path
