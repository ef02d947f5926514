"""What-if: everybody's history decided again under a candidate, beside the history under what is in force."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from threadline.app import open_engine
from threadline.capabilities.decide.whatif.simulation import Asked, prepare
from threadline.engine.context import Context

IN_FORCE = """
rules:
  good-customer:
    version: 1
    conditions: {field: features.monetary_total, greater_than: 80}
    actions: [{store_decision: {result: approve}}, {tag: {tag: good}}]
  frequent:
    version: 1
    conditions:
      all:
        - {field: features.frequency_purchases_90d, greater_than_or_equal: 3}
        - {field: event.properties.total, greater_than: 100}
    actions: [{store_decision: {result: review}}]
  looks-at-tents:
    version: 1
    conditions: {all: [{field: event.properties.category, equals: shelter}, {field: traits.plan, equals: pro}]}
    actions: [{store_decision: {result: approve}}]
rule_sets:
  orders: {events: [purchase_completed, purchase_refunded], rules: [good-customer, frequent]}
  views: {events: [product_viewed], rules: [looks-at-tents]}
"""
THRESHOLD = IN_FORCE.replace("greater_than: 80", "greater_than: 70").replace("version: 1", "version: 2", 1)
FEATURE = """
features:
  monetary_total: {aggregate: sum, events: purchase_completed, of: total, version: 2}
"""
"""Refunds are not taken off any more: everything that features are made of is folded anew, on both sides."""


def measure(stage: Stage) -> list[Row]:
    """Events per second on one core, all events of the store counted, and the memory it took."""
    path = stage.file()
    definitions = stage.folder / "in_force.yaml"
    definitions.write_text(IN_FORCE)
    rows = []
    for name, candidate, goal in (
        ("what-if, another threshold", THRESHOLD, Goal("ours", least=30_000)),
        ("what-if, another feature", FEATURE, None),
    ):
        events, seconds, before, most, changed = in_child(_try, path, definitions, candidate)
        note = (
            f"{events:,} events in {seconds:.1f} s, {changed:,} answers changed, at most {most / 1e6:,.0f} MB, "
            f"{(most - before) / 1e6:,.0f} MB more than before"
        )
        rows.append(Row(name, events / seconds, "events/s", goal=goal, note=note))
    return rows


def _try(path: Path, definitions: Path, candidate: str) -> tuple[int, float, int, int, int]:
    engine = open_engine(path, definitions=definitions, readonly=True)
    context: Any = Context(engine, "default", engine.clock(), "bench")
    trying = prepare(context, Asked(definitions=candidate))
    before = _rss_bytes()
    started_at = time.perf_counter()
    events = sum(done.events for done in trying.pages(None))
    seconds = time.perf_counter() - started_at
    counts = trying.tally.counts
    assert counts.failed == counts.errors == 0, counts.failures
    engine.close()
    return events, seconds, before, _rss_bytes(), counts.changed


def _rss_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
