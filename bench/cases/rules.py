"""Rules: one event against many, with trace and hash, beside a decision table of the GoRules engine in the same run."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row, quantile
from bench.stage import Stage
from threadline.capabilities.decide.rules import ActiveRules, Decided, decide
from threadline.capabilities.decide.rules.definition import rule_of_json, set_of_json
from threadline.kernel.event import Event, Identifier, Recorded

RULES = 100
MANY, APPLYING = 10_000, 20
EVENTS = 500
AMOUNT, DAYS, CHANNEL = "event.properties.amount", "event.properties.days", "event.properties.channel"

Run = Callable[[Recorded], Any]


class _Nobody:
    """Nothing is known of the person: the rules here go by the event."""

    at = 0

    def view(self, name: str) -> None:
        return None


def measure(stage: Stage) -> list[Row]:
    """Microseconds for one event, our side and theirs turn by turn; then one event among ten thousand rules."""
    return in_child(_measure, stage.world.seed, stage.seconds)


def _measure(seed: int, seconds: float) -> list[Row]:
    events = _events(random.Random(f"{seed} rules"))
    theirs = _theirs()
    matched, every, alone = (_active(record) for record in ("matched", "all", "matched"))
    for event in events:  # first of all, both must say the same
        found = [int(each.rule.id[1:]) for each in decide(matched, event, _Nobody())]
        assert found == theirs(event), event
    # The recorder keeps the collector from looking through a group while it grows; so do we, on both sides.
    gc.collect()
    gc.disable()
    rows = []
    cases: list[tuple[str, Run, float | None, str]] = [
        ("matched rules traced and hashed", lambda e: _hashed(decide(matched, e, _Nobody())), 5.0, ""),
        (
            "every rule traced and hashed",
            lambda e: _hashed(decide(every, e, _Nobody())),
            1.0,
            "trace as canonical JSON, which is what is hashed; theirs traces the rows that match, without a hash",
        ),
        ("which rules match, no trace", lambda e: decide(alone, e, _Nobody()), None, "theirs as above"),
    ]
    for name, run, least, note in cases:
        ours, other = _turns(events, run, theirs, seconds)
        goal = None if least is None else Goal("ratio", least=least)
        # Rates, so that more is better on both sides of the ratio.
        rows.append(Row(f"{RULES} rules of 3 conditions: {name}", 1e6 / ours, "events/s", 1e6 / other, goal, note))
    latencies = _many(random.Random(f"{seed} many"))
    rows.append(
        Row(
            f"one event against {MANY:,} rules of which {APPLYING} apply, traced and hashed, p50",
            quantile(latencies, 0.5),
            "ms",
            goal=Goal("ours", most=0.5),
        )
    )
    rows.append(Row("the same, p99", quantile(latencies, 0.99), "ms"))
    return rows


def _hashed(decided: Sequence[Decided]) -> list[str]:
    return [each.hash for each in decided]


def _turns(events: Sequence[Recorded], ours: Run, theirs: Run, seconds: float) -> tuple[float, float]:
    """Microseconds an event on both sides, the best of several turns of each."""
    best = {"ours": 1e18, "theirs": 1e18}
    stop_at = time.perf_counter() + seconds
    while time.perf_counter() < stop_at:
        for name, run in (("ours", ours), ("theirs", theirs)):
            started_at = time.process_time()
            for event in events:
                run(event)
            best[name] = min(best[name], (time.process_time() - started_at) / len(events) * 1e6)
    return best["ours"], best["theirs"]


def _events(source: random.Random) -> list[Recorded]:
    return [
        _event(
            number,
            {"amount": source.randrange(100), "days": source.randrange(200), "channel": f"c{source.randrange(10)}"},
        )
        for number in range(EVENTS)
    ]


def _event(number: int, properties: dict[str, Any]) -> Recorded:
    who = (Identifier("user_id", "ada"),)
    event = Event(type="applied", identifiers=who, occurred_at=number, key=str(number), properties=properties)
    return Recorded(event, f"{number:032x}", "0" * 32, number + 1, number)


def _active(record: str) -> ActiveRules:
    rules = [
        rule_of_json(
            f"r{number:03d}",
            {
                "conditions": {
                    "all": [
                        {"field": AMOUNT, "greater_than": number},
                        {"field": DAYS, "less_than": 200 - number},
                        {"field": CHANNEL, "equals": f"c{number % 10}"},
                    ]
                },
                "actions": [{"store_decision": {"result": "approve", "rule": number}}],
            },
        )
        for number in range(RULES)
    ]
    asked = set_of_json("all", {"events": ["applied"], "rules": [rule.id for rule in rules], "record": record})
    return ActiveRules(rules, [asked])


def _theirs() -> Run:
    # Only this case needs it: the others run where it is not installed.
    from bench.peers.zen_peer import ZenTable

    rows = [(f"> {number}", f"< {200 - number}", f"'c{number % 10}'") for number in range(RULES)]
    table = ZenTable(rows, ("amount", "days", "channel"))
    return lambda recorded: table.matching(recorded.event.properties)


def _many(source: random.Random) -> list[float]:
    rules = [
        rule_of_json(
            f"r{number:05d}",
            {
                "conditions": {
                    "all": [
                        {"field": "event.properties.sku", "equals": f"sku-{number // APPLYING}"},
                        {"field": "event.properties.total", "greater_than": 10},
                    ]
                },
                "actions": [{"store_decision": {"result": "approve"}}, {"tag": {"tag": f"bought {number}"}}],
            },
        )
        for number in range(MANY)
    ]
    active = ActiveRules(rules, [set_of_json("all", {"events": ["applied"], "rules": [rule.id for rule in rules]})])
    skus = [f"sku-{number}" for number in range(MANY // APPLYING)]
    for number, sku in enumerate(skus):
        # The index is made for the first event, and the form of each rule when it first speaks.
        _hashed(decide(active, _event(number, {"sku": sku, "total": 11}), _Nobody()))
    latencies = []
    for number in range(2_000):
        event = _event(number, {"sku": source.choice(skus), "total": source.randrange(11, 500)})
        started_at = time.perf_counter()
        found = decide(active, event, _Nobody())
        _hashed(found)
        latencies.append((time.perf_counter() - started_at) * 1_000)
        assert len(found) == APPLYING
    return latencies
