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
from bench.trees import OURS, Tree
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import HOUR
from threadline.testing.world import segment_message

ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")
"""Their days differ by one or two."""
CALL = 100
STEP, STEPS = 200, 6
"""Events of a row, and rows."""
BESIDE = ("in reverse, alternating zones", "as large as may be", "anything")
"""The attacks whose bystander is measured, each by a person of its own."""
ATTACK_EVENTS, ATTACK_CALL, ATTACK_CALL_BYTES = 4_000, 200, 2_000_000
"""What an attack sends again and again, and how much of it in a call."""
ATTACK_CONNECTIONS = 4
BYSTANDER_RATE = 20.0
UNLIMITED = "ours without a limit"


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
    beside = {tree.name: _beside(stage, tree.name, tree) for tree in stage.trees}
    beside[UNLIMITED] = _beside(stage, UNLIMITED, OURS, PERSON_EVENTS_PER_SECOND="0")
    return rows + _bystander_rows(beside)


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


def _beside(stage: Stage, name: str, tree: Tree, **settings: str) -> dict[str, Measured]:
    """The bystander's requests alone, by the name "", and beside each attack."""
    found = {}
    with Server(stage.folder / f"bystander {name}.db", tree, **settings) as server:
        in_child(_send, server.port, "warming", 1.0)
        for attack in ("", *BESIDE):
            found[attack] = in_child(_send, server.port, attack, stage.seconds)
            assert not found[attack].failed, (attack, found[attack].statuses)
    return found


def _send(port: int, attack: str, seconds: float) -> Measured:
    """Single events of somebody else at a steady rate, with or without an attack beside them."""
    bodies = [
        {"userId": f"bystander-{number % 50}", "event": "tool_used", "messageId": f"{attack}-{number}"}
        for number in range(round(seconds * BYSTANDER_RATE))
    ]
    singles = [post("/v1/track", msgspec.json.encode(body), WRITE_KEY) for body in bodies]
    loads = [Load(name="bystander", requests=singles, connections=2, rate=BYSTANDER_RATE)]
    if attack in BESIDE:
        calls = list(_calls(attack))
        loads.append(Load(name="adversary", requests=calls, connections=ATTACK_CONNECTIONS, loop=True))
    return drive(port, loads, seconds)["bystander"]


def _calls(attack: str) -> Iterator[bytes]:
    # Not at the top: this module also runs where the earlier commit is imported, which has no such attacks.
    from threadline.app import catalogue
    from threadline.testing.adversary import attacks

    handled = (type for each in catalogue().projections for type in each.handles or ())
    types = sorted({type for type in handled if not type.startswith("threadline")})
    event = attacks(Identifier("user_id", f"adversary {attack}"), types, time.time_ns() // 1_000)[attack]
    messages: list[bytes] = []
    for number in range(ATTACK_EVENTS):
        messages.append(msgspec.json.encode(segment_message(event(number))))
        if len(messages) == ATTACK_CALL or sum(map(len, messages)) > ATTACK_CALL_BYTES or number == ATTACK_EVENTS - 1:
            yield post("/v1/batch", b'{"batch":[' + b",".join(messages) + b"]}", WRITE_KEY)
            messages.clear()


def _bystander_rows(results: dict[str, dict[str, Measured]]) -> list[Row]:
    def median(attack: str) -> dict[str, float]:
        return quantiles({name: found[attack].latencies_ms for name, found in results.items()}, 0.5)

    alone = median("")
    rows = [compared("a bystander's event over HTTP, alone, p50", alone, "ms")]
    for attack in BESIDE:
        beside = median(attack)
        longer = {name: beside[name] / alone[name] for name in results}
        slowest = {name: max(found[attack].latencies_ms) for name, found in results.items()}
        name = f"beside one person, {attack}"
        rows += [
            compared(f"{name}, p50", beside, "ms"),
            compared(f"{name}, p50, by what it is alone", longer, "×", Goal("ours", most=3.0)),
            Row("the same without a limit of events a second", longer[UNLIMITED], "×"),
            compared("the slowest", slowest, "ms"),
        ]
    return rows
