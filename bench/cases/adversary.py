"""One person against everybody: events in reverse with alternating time zones, and what a bystander waits meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.contest import Part, in_child, in_turns
from bench.load import Load, Measured, drive, post
from bench.row import Goal, Row, compared, quantiles
from bench.server import WRITE_KEY, Server
from bench.stage import Stage
from bench.threadline_side import Threadline
from bench.trees import Tree
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import HOUR, format_time

ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")
"""Their days differ by one or two."""
CALL = 100
STEP, STEPS = 200, 6
"""Events of a row, and rows."""
ATTACK_CALL, ATTACK_CALLS = 200, 60
BYSTANDER_RATE = 20.0
ATTACK_STRETCHES = 2


def measure(stage: Stage) -> list[Row]:
    """Milliseconds of each event of one person as they become more, in process; then a bystander's over HTTP."""
    parts = {tree.name: Part(_steps, (stage.folder / f"adversary-{tree.name}.db",), tree) for tree in stage.trees}
    results = in_turns(parts, STEPS)
    rows = []
    for number in range(STEPS):
        spent = {name: steps[number] for name, steps in results.items()}
        name = (
            f"one person in reverse with alternating zones, an event of the {STEP} up to the {STEP * (number + 1):,}th"
        )
        rows.append(compared(name, spent, "ms", note=f"calls of {CALL}" * (not number)))
    growth = {name: steps[-1] / steps[0] for name, steps in results.items()}
    rows.append(compared(f"the last {STEP} by the first {STEP}", growth, "×", Goal("ours", most=2.0)))
    return rows + _bystander_rows({tree.name: _beside(stage, tree) for tree in stage.trees})


def _event(number: int, now: int) -> Event:
    return Event(
        type="page", identifiers=(Identifier("user_id", "adversary"),), occurred_at=now - (number + 1) * HOUR,
        key=f"adversary-{number}", properties={"title": "Home"}, context={"timezone": ZONES[number % 2]},
    )  # fmt: skip


def _steps(path: Path) -> Iterator[Any]:
    """Milliseconds an event of each step."""
    side, now = Threadline(path), time.time_ns() // 1_000
    events = [_event(number, now) for number in range(STEP * STEPS)]
    yield None
    for first in range(0, len(events), STEP):
        started_at = time.perf_counter()
        for at in range(first, first + STEP, CALL):
            side.record(events[at : at + CALL])
        yield (time.perf_counter() - started_at) / STEP * 1_000
    side.close()


def _beside(stage: Stage, tree: Tree) -> tuple[Measured, Measured, int]:
    """The bystander's requests alone and beside the adversary, and how many of its events were taken meanwhile."""
    with Server(stage.folder / f"bystander-{tree.name}.db", tree) as server:
        in_child(_send, server.port, "warming", 1.0, False)
        alone = in_child(_send, server.port, "alone", stage.seconds, False)["bystander"]
        results = in_child(_send, server.port, "beside", ATTACK_STRETCHES * stage.seconds, True)
    bystander: Measured = results["bystander"]
    assert not alone.failed
    assert not bystander.failed, bystander.statuses
    return alone, bystander, results["adversary"].answered * ATTACK_CALL


def _send(port: int, prefix: str, seconds: float, attacked: bool) -> dict[str, Measured]:
    """Single events of somebody else at a steady rate, with or without the adversary beside them."""
    now = time.time_ns() // 1_000
    bodies = [
        {"userId": f"bystander-{number % 50}", "event": "tool_used", "messageId": f"{prefix}-{number}"}
        for number in range(round(seconds * BYSTANDER_RATE))
    ]
    singles = [post("/v1/track", msgspec.json.encode(body), WRITE_KEY) for body in bodies]
    loads = [Load(name="bystander", requests=singles, connections=2, rate=BYSTANDER_RATE)]
    if attacked:
        calls = [
            [_message(_event(number, now)) for number in range(at * ATTACK_CALL, (at + 1) * ATTACK_CALL)]
            for at in range(ATTACK_CALLS)
        ]
        requests = [post("/v1/batch", msgspec.json.encode({"batch": call}), WRITE_KEY) for call in calls]
        loads.append(Load(name="adversary", requests=requests))
    return drive(port, loads, seconds)


def _message(event: Event) -> dict[str, Any]:
    return {
        "type": "page", "userId": event.identifiers[0].value, "messageId": event.key, "properties": event.properties,
        "timestamp": format_time(event.occurred_at), "context": event.context,
    }  # fmt: skip


def _bystander_rows(results: dict[str, tuple[Measured, Measured, int]]) -> list[Row]:
    alone = quantiles({name: measured.latencies_ms for name, (measured, _, _) in results.items()}, 0.5)
    beside = quantiles({name: measured.latencies_ms for name, (_, measured, _) in results.items()}, 0.5)
    worst = {name: max(measured.latencies_ms) for name, (_, measured, _) in results.items()}
    longer = {name: beside[name] / alone[name] for name in results}
    taken = ", ".join(f"{count:,}" for _, _, count in results.values())
    note = f"{taken} events of the adversary taken meanwhile, calls of {ATTACK_CALL} by one connection"
    return [
        compared("a bystander's event over HTTP, alone, p50", alone, "ms"),
        compared("beside that person, p50", beside, "ms", note=note),
        compared("beside that person, p50, by what it is alone", longer, "×", Goal("ours", most=3.0)),
        compared("beside that person, the slowest", worst, "ms"),
    ]
