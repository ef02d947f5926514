"""A broadcast to 100,000 people: how long its audience takes to be resolved and addressed, and the memory it takes."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from bench.threadline_side import WORKSPACE
from threadline.app import open_engine
from threadline.engine.context import Context
from threadline.engine.delivery.job_worker import JobWorker
from threadline.engine.delivery.leases import Leases
from threadline.kernel.event import Event, Identifier

PEOPLE = 100_000
BATCH = 500
DEFINITIONS = """
segments: {pros: {when: {field: traits.plan, equals: pro}}}
mail: {senders: {shop: {from: shop@shop.example}}, templates: {sale: {subject: Sale, text: Hello}}}
"""
AUDIENCES: dict[str, dict[str, Any]] = {
    "everybody of whom a condition is true": {"when": {"field": "traits.plan", "equals": "pro"}},
    "everybody with a tag": {"tags": ["news"]},
    "a segment": {"segment": "pros"},
}
RESOLVING, AIM = Goal("ours", most=20.0), Goal("ours", most=10.0)
MEGABYTES = Goal("ours", most=50.0)


def measure(stage: Stage) -> list[Row]:
    """Seconds of each phase, and what the process has grown by meanwhile."""
    rows = []
    for name, found in in_child(_measure, stage.folder / "broadcasts").items():
        rows.append(Row(f"resolving {PEOPLE:,} people: {name}", found["resolve"], "s", goal=RESOLVING, aim=AIM))
        rows.append(Row(f"addressing them: {name}", found["send"], "s"))
        rows.append(Row(f"memory that both take: {name}", found["megabytes"], "MB", goal=MEGABYTES))
    return rows


def _measure(folder: Path) -> dict[str, dict[str, float]]:
    folder.mkdir()
    definitions = folder / "broadcasts.yaml"
    definitions.write_text(DEFINITIONS)
    engine = open_engine(folder / "broadcasts.db", definitions=definitions)
    for batch in _people():
        engine.recorder.record(batch)
    found = {name: _sent(engine, f"b{number}", audience) for number, (name, audience) in enumerate(AUDIENCES.items())}
    engine.close()
    return found


def _people() -> Iterator[list[Event]]:
    now = time.time_ns() // 1_000
    for start in range(0, PEOPLE, BATCH):
        yield [
            Event(
                type=type,
                identifiers=(Identifier("user_id", f"u{n}"),),
                occurred_at=now,
                key=f"{type}/{n}",
                properties=properties,
            )
            for n in range(start, start + BATCH)
            for type, properties in (
                ("identify", {"plan": "pro", "email": f"u{n}@example.com"}),
                ("tag_added", {"tag": "news"}),
            )
        ]


def _sent(engine: Any, id: str, audience: dict[str, Any]) -> dict[str, float]:
    operations = {operation.name: operation for operation in engine.catalogue.operations}

    def run(operation: str, **params: Any) -> Any:
        declared = operations[operation]
        return declared.run(Context(engine, WORKSPACE, engine.clock()), msgspec.convert(params, declared.params))

    run("broadcasts_create", id=id, template="sale", audience=audience)
    run("broadcasts_start", id=id)
    worker = JobWorker(engine, Leases(engine.store, engine.clock, "bench", 30.0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = {"resolving": 0.0, "sending": 0.0}
    while (state := run("broadcasts_show", id=id).state) != "done":
        started_at = time.perf_counter()
        worker.work_due()
        seconds["sending" if state == "sending" else "resolving"] += time.perf_counter() - started_at
    assert run("broadcasts_show", id=id).audience == PEOPLE
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1_024
    return {"resolve": seconds["resolving"], "send": seconds["sending"], "megabytes": grown}
