"""What an engine counts, as `/metrics` shows it: decisions, merges, sends, skipped mails and failed folds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.engine.test_dispatch import NOW, Clock
from threadline import app
from threadline.engine.counts import COMBINATIONS_MAX, SENDS, Counts
from threadline.kernel.event import Event, Identifier
from threadline.kernel.sender import EFFECT_UNKNOWN, Outcome
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = """
rules:
  big:
    version: 3
    conditions: {field: event.properties.total, greater_than: 1}
    actions: [{call_webhook: {url: 'https://192.168.7.7/hooks', payload: {total: 1}}}]
rule_sets:
  orders: {events: [ordered], rules: [big]}
"""


class Shop:
    """A store with a rule whose webhook is refused, and what `/metrics` says of it."""

    def __init__(self, folder: Path) -> None:
        (folder / "threadline.yaml").write_text(DEFINITIONS)
        settings = Settings(store="memory:", definitions=str(folder / "threadline.yaml"), tokens="tk-counting")
        self.engine = app.open_engine(settings=settings, clock=Clock())
        self.store = Threadline(self.engine, workspace="default", source="shop")
        self.dispatcher = app.open_dispatcher(self.engine, settings)
        self.application = Application(self.engine, settings)

    def metrics(self, *names: str) -> dict[str, float]:
        with TestClient(self.application) as client:
            text = client.get("/metrics", headers={"Authorization": "Bearer tk-counting"}).text
        samples = re.findall(r"^(\w+)(\{.*\})? (\S+)$", text, re.MULTILINE)
        return {f"{name}{labels}": float(value) for name, labels, value in samples if name in names}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.engine.close()


def test_decisions_are_counted_by_rule_and_version_and_sends_by_outcome(shop: Shop) -> None:
    for number in (1, 2, 3):
        shop.store.track(f"ada{number}", "ordered", {"total": number}, key=f"o{number}")
    shop.store.track("ada2", "ordered", {"total": 2}, key="o2")  # a duplicate decides nothing
    shop.dispatcher.run_once()
    assert shop.metrics("threadline_decisions_total", "threadline_sends_total") == {
        'threadline_decisions_total{workspace="default",rule="big",version="3"}': 2,
        'threadline_sends_total{workspace="default",kind="webhook",outcome="parked"}': 2,
    }


def test_a_decision_that_somebody_sends_as_an_event_is_not_counted(shop: Shop) -> None:
    shop.store.track("ada", "decision_made", {"rule": "ada@example.com", "version": 1})
    assert shop.metrics("threadline_decisions_total") == {}


def test_merges_splits_and_quarantined_joins_are_counted(shop: Shop) -> None:
    a, b, browser = Identifier("user_id", "a"), Identifier("user_id", "b"), Identifier("anonymous_id", "x")
    for key, who in enumerate([(browser,), (a,), (a, browser), (b,), (a, b), (a, b)]):
        event = Event(type="seen", identifiers=who, occurred_at=NOW, key=str(key))
        assert shop.engine.recorder.record([event])[0].status == "accepted"
    assert shop.metrics("threadline_identity_merges_total") == {
        'threadline_identity_merges_total{workspace="default",outcome="merged"}': 1,
        'threadline_identity_merges_total{workspace="default",outcome="quarantined"}': 1,
    }


def test_a_metric_has_no_more_series_than_its_limit() -> None:
    counts = Counts()
    for number in range(COMBINATIONS_MAX + 5):
        counts.sent("default", f"kind {number}", Outcome(type="x"))
    values = counts.values[SENDS.name]
    assert (len(values), values["default", "other", "other"]) == (COMBINATIONS_MAX + 1, 5)


def test_an_attempt_is_counted_by_what_came_of_it() -> None:
    counts = Counts()
    for outcome in (
        Outcome(type="mail_sent"),
        Outcome(type="x", retry_after_seconds=0.0),
        Outcome(type="x", parked="gone"),
        Outcome(type=EFFECT_UNKNOWN),
    ):
        counts.sent("default", "mail", outcome)
    assert [labels[2] for labels in counts.values[SENDS.name]] == ["sent", "retried", "parked", "unknown"]


def test_every_metric_of_the_conventions_is_exposed(shop: Shop) -> None:
    with TestClient(shop.application) as client:
        text = client.get("/metrics", headers={"Authorization": "Bearer tk-counting"}).text
    there = dict(re.findall(r"^# TYPE (\w+) (\w+)", text, re.MULTILINE))
    counters = {
        "threadline_events_ingested_total",
        "threadline_projection_errors_total",
        "threadline_sends_total",
        "threadline_suppressions_total",
        "threadline_identity_merges_total",
        "threadline_decisions_total",
        "threadline_mcp_calls_total",
    }
    gauges = {
        "threadline_projection_position",
        "threadline_projection_lag_seconds",
        "threadline_due_queue_depth",
        "threadline_outbox_depth",
        "threadline_oldest_undelivered_seconds",
        "threadline_feature_staleness_seconds",
    }
    assert {name for name, kind in there.items() if kind == "counter"} >= counters
    assert {name for name, kind in there.items() if kind == "gauge"} >= gauges
    assert there["threadline_append_seconds"] == "histogram"
    assert text.endswith("\n")
