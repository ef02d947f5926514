"""Tools for agents: the time of a call, without the network."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from threadline.app import open_engine
from threadline.kernel.event import Event, Identifier
from threadline.surfaces.mcp.protocol import Protocol, Request
from threadline.surfaces.mcp.tool import Caller

PEOPLE, EVENTS_EACH, BATCH = 20_000, 10, 500
CALLS = 300
P99 = Goal("ours", most=50.0)
TOOLS: dict[str, dict[str, Any]] = {
    "find_person": {},
    "tell_about_person": {},
    "timeline": {"of": "events"},
    "list_definitions": {"kind": "all"},
    "check_operations": {"what": "queues"},
}
OF_PERSON = frozenset({"tell_about_person", "timeline"})


def measure(stage: Stage) -> list[Row]:
    """The 99th percentile of each tool, masked, in milliseconds."""
    found = in_child(_measure, stage.folder / "mcp")
    return [Row(f"MCP tool {tool}, p99", value, "ms", goal=P99) for tool, value in found.items()]


def _measure(folder: Path) -> dict[str, float]:
    folder.mkdir()
    engine = open_engine(folder / "mcp.db")
    for batch in _events():
        engine.recorder.record(batch)
    answering = Protocol(engine, "bench")
    found = {tool: _p99(answering, tool, arguments) for tool, arguments in TOOLS.items()}
    engine.close()
    return found


def _p99(answering: Protocol, tool: str, arguments: dict[str, Any]) -> float:
    caller = Caller("default", "bench", ("read", "write", "admin") if tool == "check_operations" else ("read",))
    taken = []
    for call in range(CALLS):
        given = {**arguments, "id": f"u{call * 7919 % PEOPLE}"} if tool in OF_PERSON else arguments
        began = time.perf_counter()
        answer = answering.answer(Request(call, "tools/call", {"name": tool, "arguments": given}, True), caller)
        taken.append((time.perf_counter() - began) * 1e3)
        assert not answer["result"]["isError"], answer
    return statistics.quantiles(taken, n=100)[98]


def _events() -> Iterator[list[Event]]:
    batch: list[Event] = []
    for number in range(PEOPLE * EVENTS_EACH):
        user = number % PEOPLE
        batch.append(
            Event(
                type="purchase_completed",
                identifiers=(Identifier("user_id", f"u{user}"), Identifier("email", f"u{user}@example.com")),
                occurred_at=1_700_000_000_000_000 + number,
                key=str(number),
                source="bench",
                properties={"total": number % 90, "currency": "EUR"},
            )
        )
        if len(batch) == BATCH:
            yield batch
            batch = []
