"""Traces: an event and what follows from it are one trace, in every process, and tracing never stands in the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.engine.test_dispatch import NOW, Clock
from threadline import app
from threadline.capabilities.profile.people.definition import rules
from threadline.engine import tracing
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine, Surroundings
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.tracing import open_tracing, root_span
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Effect, Emit, Policy, Wish
from threadline.kernel.sender import Outcome
from threadline.kernel.time import HOUR
from threadline.kernel.tracing import CURRENT, read_traceparent
from threadline.settings import Settings
from threadline.stores.memory import MemoryStore

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def note(recorded: Recorded, known: Any) -> Sequence[Wish]:
    return [Emit(type="noted", key="noted", occurred_at=recorded.event.occurred_at)]


def call(recorded: Recorded, known: Any) -> Sequence[Wish]:
    if recorded.event.type != "noted":
        raise ValueError("a mistake")
    return [Effect(kind="box", key="call", data={})]


POLICIES = [
    Policy(name="note", handles=frozenset({"write"}), react=note),
    Policy(name="call", handles=frozenset({"noted", "broken"}), react=call),
]


class Box:
    """A sender that remembers in which span it was called."""

    kind = "box"

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.called_in: list[str] = []

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """See `Sender`."""
        self.called_in.append(str(CURRENT.get()))
        return self.outcomes.pop(0) if self.outcomes else Outcome(type="mail_sent")


def process(store: MemoryStore, clock: Clock) -> tuple[Engine, InMemorySpanExporter]:
    """An engine with spans of its own, as another process has."""
    values = [*discover("threadline.capabilities.profile.people.projection", definitions=None), *POLICIES]
    spans = InMemorySpanExporter()
    surroundings = Surroundings(tracing=open_tracing(store, clock, spans))
    return Engine(store, Catalogue(values, rules()), clock, surroundings), spans


def event(type: str = "write", key: str = "1") -> Event:
    return Event(type=type, identifiers=(Identifier("user_id", "ada@example.com"),), occurred_at=NOW, key=key)


def tree(spans: Sequence[ReadableSpan]) -> dict[str, list[str]]:
    """Names of spans, each below its parent's; "" for a span without one."""
    names = {span.context.span_id: span.name for span in spans}
    found: dict[str, list[str]] = {}
    for span in spans:
        found.setdefault(names.get(span.parent.span_id, "?") if span.parent else "", []).append(span.name)
    return found


def test_an_event_its_policies_and_the_effect_sent_by_another_process_hours_later_are_one_trace() -> None:
    clock, store = Clock(), MemoryStore()
    first, spans = process(store, clock)
    receipt = first.recorder.record([event()])[0]
    second, later = process(store, clock)
    box = Box(Outcome(type="x", retry_after_seconds=60.0))
    dispatcher = Dispatcher(second, {"box": box}, "second")
    for _ in range(2):
        dispatcher.run_once()
        clock.now += 3 * HOUR
    written = [*spans.get_finished_spans(), *later.get_finished_spans()]
    assert {f"{span.context.trace_id:032x}" for span in written} == {receipt.id}
    assert tree(written) == {
        "": ["ingest"],
        "ingest": ["commit", "policy note", "policy call", "outbox box", "record", "outbox box", "record"],
        "outbox box": ["send box", "send box"],
        "record": ["commit", "commit"],
    }
    sent = [span for span in written if span.name == "send box"]
    assert box.called_in == [f"00-{receipt.id}-{span.context.span_id:016x}-01" for span in sent]
    assert [span.status.is_ok for span in sent] == [False, True]
    assert [dict(span.attributes or {})["threadline.attempt"] for span in sent] == [1, 2]
    waited = [span for span in written if span.name == "outbox box"]
    assert [span.end_time - span.start_time for span in waited] == [0, 3 * HOUR * 1_000 - 60_000_000_000]
    assert not any("ada" in str(value) for span in written for value in dict(span.attributes or {}).values())


@pytest.mark.policies_fail
def test_a_policy_that_raises_is_a_span_with_an_error() -> None:
    engine, spans = process(MemoryStore(), Clock())
    engine.recorder.record([event("broken")])
    failed = next(span for span in spans.get_finished_spans() if span.name == "policy call")
    assert (failed.status.is_ok, failed.status.description) == (False, "ValueError")


def test_a_duplicate_and_a_rejected_event_write_no_span() -> None:
    engine, spans = process(MemoryStore(), Clock())
    engine.recorder.record([event()])
    spans.clear()
    statuses = [receipt.status for receipt in engine.recorder.record([event(), event("", "2")])]
    assert statuses == ["duplicate", "rejected"]
    assert spans.get_finished_spans() == ()


def test_a_sampler_leaves_out_whole_traces_alike_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    clock, store = Clock(), MemoryStore()
    (first, spans), (second, later) = process(store, clock), process(store, clock)
    first.recorder.record([event(key=str(number)) for number in range(40)])
    Dispatcher(second, {"box": Box()}, "second").run_once()
    sent = [span.context.trace_id for span in later.get_finished_spans() if span.name == "send box"]
    ingested = [span.context.trace_id for span in spans.get_finished_spans() if span.name == "ingest"]
    assert set(sent) == set(ingested)
    assert 5 < len(sent) < 35


class Broken(SpanExporter):
    """An exporter that raises."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See `SpanExporter`."""
        raise OSError("no route to the collector")


def test_tracing_that_fails_refuses_no_event_and_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, store = Clock(), MemoryStore()
    engine, _ = process(store, clock)
    engine.recorder.tracing = traced = open_tracing(store, clock, Broken())

    def fail(*args: Any, **options: Any) -> Any:
        raise RuntimeError("no span can be made")

    box = Box()
    assert engine.recorder.record([event()])[0].status == "accepted"
    monkeypatch.setattr(traced, "_write", fail)
    assert engine.recorder.record([event(key="2")])[0].status == "accepted"
    Dispatcher(engine, {"box": box}, "only").run_once()
    assert len(box.called_in) == 2


@pytest.mark.parametrize(
    "text", ["", "00-0-0-01", CALLER.upper(), f"ff{CALLER[2:]}", f"{CALLER}-more", f"{CALLER[:36]}{'0' * 16}-01"]
)
def test_a_traceparent_that_cannot_be_read_is_none(text: str) -> None:
    assert read_traceparent(text) is None


def test_a_traceparent_is_written_as_it_is_read() -> None:
    assert str(read_traceparent(CALLER)) == CALLER
    assert str(root_span("0af7651916cd43dd8448eb211c80319c")).startswith(CALLER[:36])


def test_without_the_extra_the_setting_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match="OpenTelemetry is not installed") as caught:
        app.open_engine("memory:", Settings(tracing=True))
    assert ".[otel]" in caught.value.hint


def test_without_the_setting_opentelemetry_is_not_even_loaded() -> None:
    program = (
        "import sys, threadline; store = threadline.open('memory:'); store.track('ada', 'Seen');"
        "assert 'opentelemetry' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
