"""Rules on one PostgreSQL store with several engines: every event is decided once, by a version that was in force."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from tests.servers.postgres import server, store_in
from threadline.app import catalogue
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import feed_pages
from threadline.kernel.time import SECOND, parse_time, system_clock
from threadline.testing.store_cases import at_once

REFRESH_SECONDS = 0.2
WRITERS, EVENTS = 3, 60


def ask(on: Engine, operation: str, **params: Any) -> Any:
    declared = next(each for each in on.catalogue.operations if each.name == operation)
    context = Context(on, "default", on.clock(), "ada")
    return declared.run(context, msgspec.convert(params, declared.params))


def applied(number: int) -> Event:
    return Event(
        type="applied",
        identifiers=(Identifier("user_id", f"u{number % 4}"),),
        occurred_at=1_000 + number,
        key=f"{number}",
        properties={"n": number},
    )


def activate(on: Engine, number: int) -> None:
    rule = {
        "conditions": {"field": "event.properties.n", "exists": True},
        "actions": [{"store_decision": {"result": "approve", "by": number}}, {"emit_event": {"type": "approved"}}],
    }
    version = ask(on, "rules_write", id="all", rule=rule).version
    ask(on, "rules_activate", id="all", version=version, untested=True)


def test_changes_under_load_decide_every_event_once(tmp_path: Path) -> None:
    stores = [store_in(server("18"), tmp_path) for _ in range(WRITERS + 1)]
    engines = [Engine(store, catalogue(), system_clock) for store in stores]
    for on in engines:
        on.shared.refresh_seconds = REFRESH_SECONDS
    operator, *writers = engines
    ask(operator, "rule_sets_write", name="s", events=["applied"], rules=["all"])
    activate(operator, 0)
    time.sleep(REFRESH_SECONDS)
    changed, over = threading.Event(), threading.Event()
    in_force: dict[int, int] = {}
    """Number of a version -> when it had certainly begun."""
    told_at: dict[str, int] = {}

    def operate() -> None:
        for number in itertools.count(1):
            activate(operator, number)
            in_force[number] = operator.clock()
            changed.set()
            if over.wait(0.02):
                return

    def tell(on: Engine, first: int) -> None:
        for number in range(first, EVENTS, WRITERS):
            if number - first == EVENTS // 2:
                # However fast this is, the other half is told when the first change has come round.
                assert changed.wait(60)
                time.sleep(REFRESH_SECONDS)
            # The same few people everywhere, and every event by two writers: only one of them records it.
            for told in (number, number - 1):
                at = on.clock()
                [receipt] = on.recorder.record([applied(told)])
                if receipt.status == "accepted":
                    told_at[receipt.id] = at

    operating = threading.Thread(target=operate)
    operating.start()
    try:
        at_once(*[lambda on=on, n=n: tell(on, n) for n, on in enumerate(writers)])
    finally:
        over.set()
        operating.join()
    events = [operator.log.event("default", each.entry.id) for each in feed_pages(stores[0])]
    causes = {each.id for each in events if each.event.type == "applied"}
    made = [each for each in events if each.event.type == "decision_made"]
    assert len(causes) == EVENTS + 1  # and the one before the first
    assert sorted(each.event.properties["event_id"] for each in made) == sorted(causes)
    assert sorted(each.cause for each in events if each.event.type == "approved") == sorted(causes)
    turns = [turn for turn in ask(operator, "rules_log", id="all", limit=500).log if turn.to == "active"]
    begun = {turn.version: turn.at for turn in turns}
    for each in made:
        version, number = each.event.properties["version"], each.event.properties["output"]["by"]
        assert number == version - 1
        assert parse_time(begun[version]) <= each.recorded_at
        # Whoever told it believed for so long at most, before it began, what was no more in force.
        at = told_at[each.event.properties["event_id"]]
        assert number + 1 not in in_force or at <= in_force[number + 1] + REFRESH_SECONDS * SECOND
    assert len({each.event.properties["version"] for each in made}) > 1
    assert ask(operator, "decisions_verify", limit=10_000).breaches == []
    for store in stores:
        store.close()
