"""One person against everybody: events in reverse with alternating time zones, and what a bystander waits meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench.contest import Part, in_child, in_turns
from bench.load import Load, Measured, drive, post
from bench.row import Goal, Row, compared, quantile
from bench.server import WRITE_KEY, Server
from bench.stage import Stage
from bench.threadline_side import Threadline
from bench.trees import OURS, Tree
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import HOUR
from threadline.testing.world import segment_message

if TYPE_CHECKING:
    from threadline.testing.adversary import Attack

ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")
"""Their days differ by one or two."""
CALL = 100
STEP, STEPS = 200, 6
"""Events of a row, and rows."""
BESIDE = ("in reverse, alternating zones", "as large as may be", "anything")
"""The attacks whose bystander is measured without a limit and on the earlier commit, too; each by its own person."""
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
    for tree in stage.trees:
        rows += _bystander(stage, tree.name, tree, BESIDE if tree.path else tuple(_attacks("")))
    return [*rows, *_bystander(stage, UNLIMITED, OURS, BESIDE, PERSON_EVENTS_PER_SECOND="0")]


def _event(number: int, now: int) -> Event:
    return Event(
        type="page",
        identifiers=(Identifier("user_id", "adversary"),),
        occurred_at=now - (number + 1) * HOUR,
        key=f"adversary-{number}",
        properties={"title": "Home"},
        context={"timezone": ZONES[number % 2]},
    )


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


def _bystander(stage: Stage, name: str, tree: Tree, chosen: Sequence[str], **settings: str) -> Iterator[Row]:
    """The median of somebody else's requests beside each of these attacks and, right before it, alone."""
    with Server(stage.folder / f"bystander {name}.db", tree, **settings) as server:
        in_child(_send, server.port, "", "warming", 1.0)
        for attack in chosen:
            alone = in_child(_send, server.port, "", f"before {attack}", stage.seconds)
            beside = in_child(_send, server.port, attack, attack, stage.seconds)
            assert not alone.failed, (attack, alone.statuses)
            assert not beside.failed, (attack, beside.statuses)
            goal = Goal("ratio", most=3.0) if name == OURS.name else None
            yield Row(
                f"{name}: a bystander's event over HTTP beside one person, {attack}, p50",
                quantile(beside.latencies_ms, 0.5),
                "ms",
                quantile(alone.latencies_ms, 0.5),
                goal,
                f"theirs: alone; slowest {max(beside.latencies_ms):,.0f} ms, alone {max(alone.latencies_ms):,.0f} ms",
            )


def _send(port: int, attack: str, name: str, seconds: float) -> Measured:
    """Single events of somebody else at a steady rate, with or without an attack beside them."""
    bodies = [
        {"userId": f"bystander-{number % 50}", "event": "tool_used", "messageId": f"{name}-{number}"}
        for number in range(round(seconds * BYSTANDER_RATE))
    ]
    singles = [post("/v1/track", msgspec.json.encode(body), WRITE_KEY) for body in bodies]
    loads = [Load(name="bystander", requests=singles, connections=2, rate=BYSTANDER_RATE)]
    if attack:
        calls = list(_calls(attack))
        loads.append(Load(name="adversary", requests=calls, connections=ATTACK_CONNECTIONS, loop=True))
    return drive(port, loads, seconds)["bystander"]


def _attacks(who: str) -> dict[str, Attack]:
    # Not at the top: this module also runs where the earlier commit is imported, which has no such attacks.
    from threadline.app import catalogue
    from threadline.testing.adversary import attacks

    handled = (type for each in catalogue().projections for type in each.handles or ())
    types = sorted({type for type in handled if not type.startswith("threadline")})
    return attacks(Identifier("user_id", who), types, time.time_ns() // 1_000)


def _calls(attack: str) -> Iterator[bytes]:
    event = _attacks(f"adversary {attack}")[attack]
    messages: list[bytes] = []
    for number in range(ATTACK_EVENTS):
        messages.append(msgspec.json.encode(segment_message(event(number))))
        if len(messages) == ATTACK_CALL or sum(map(len, messages)) > ATTACK_CALL_BYTES or number == ATTACK_EVENTS - 1:
            yield post("/v1/batch", b'{"batch":[' + b",".join(messages) + b"]}", WRITE_KEY)
            messages.clear()
