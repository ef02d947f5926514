"""A wave of people whose wait in a journey ends at once: how long until all of them have gone on."""

from __future__ import annotations

import time
from pathlib import Path

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from threadline.app import open_engine
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.policy import Effect
from threadline.kernel.sender import EFFECT_DONE, Outcome
from threadline.kernel.time import DAY, HOUR

PEOPLE = 10_000
BATCH = 500
DEFINITIONS = """
mail:
  provider: {url: "inbox:", at_once: 32}
  senders: {shop: {from: shop@shop.example}}
  templates: {hello: {subject: Hello, text: Hello}}
journeys:
  wave:
    trigger: {event: signed_up}
    steps:
      - wait: 1h
      - if: {field: traits.plan, equals: pro}
        then: [{wait: 1d}, {send: hello}]
      - wait: 2d
      - send: hello
"""
WAVE, AIM = Goal("ours", most=30.0), Goal("ours", most=10.0)


class _Sink:
    kind = "mail"

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Take it."""
        return Outcome(type=EFFECT_DONE)


def measure(stage: Stage) -> list[Row]:
    """Seconds of each wave, and what is written while everybody waits."""
    found = in_child(_measure, stage.folder / "journeys")
    return [
        Row(f"{PEOPLE:,} people in a journey go on at once", found["advance"], "s", goal=WAVE, aim=AIM),
        Row("the same, each with a mail, claimed, rendered and settled", found["mail"], "s"),
        Row("events while all of them wait", found["idle"], "", goal=Goal("ours", most=0)),
    ]


def _measure(folder: Path) -> dict[str, float]:
    folder.mkdir()
    definitions = folder / "journeys.yaml"
    definitions.write_text(DEFINITIONS)
    now = [time.time_ns() // 1_000]
    engine = open_engine(folder / "journeys.db", clock=lambda: now[0], definitions=definitions)
    for start in range(0, PEOPLE, BATCH):
        engine.recorder.record(
            [
                Event(
                    type=type,
                    identifiers=(Identifier("user_id", f"u{n}"),),
                    occurred_at=now[0],
                    key=f"{type}/{n}",
                    properties={"plan": "pro", "email": f"u{n}@example.com"},
                )
                for n in range(start, start + BATCH)
                for type in ("identify", "signed_up")
            ]
        )
    found = {"idle": float(_work(engine, "idle"))}
    for name, later in (("advance", HOUR), ("mail", DAY)):
        now[0] += later + 1
        started_at = time.perf_counter()
        done = _work(engine, name)
        found[name] = time.perf_counter() - started_at
        assert done >= PEOPLE, f"{done} of {PEOPLE}"
    engine.close()
    return found


def _work(engine: Engine, owner: str) -> int:
    dispatcher = Dispatcher(engine, {"mail": _Sink()}, owner)
    total = 0
    while done := dispatcher.run_once():
        total += done
    return total
