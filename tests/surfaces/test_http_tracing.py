"""Traces over HTTP: a request is in its caller's trace, and a webhook goes on with the trace of the event behind it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from tests.senders.receiver import Receiver
from tests.surfaces.conftest import Keys, client_of
from tests.surfaces.test_http_server import Process
from threadline.engine.engine import Engine
from threadline.engine.tracing import open_tracing
from threadline.kernel.event import event_id

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ADA = {"userId": "ada@example.com", "event": "ordered", "messageId": "m1", "properties": {"total": 5}}

RULES = """
destinations:
  crm: {{url: '{url}', timeout: 10s}}
rules:
  tell:
    version: 1
    conditions: {{field: event.properties.total, greater_than: 1}}
    actions: [{{call_webhook: {{destination: crm, payload: {{total: 1}}}}}}]
rule_sets:
  orders: {{events: [ordered], rules: [tell]}}
"""


@pytest.fixture
def spans(engine: Engine) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    engine.recorder.tracing = open_tracing(engine.store, engine.clock, exporter)
    return exporter


@pytest.fixture
def traced(engine: Engine, spans: InMemorySpanExporter) -> Iterator[TestClient]:
    with client_of(engine) as client:
        yield client


def test_a_request_is_in_its_callers_trace_and_linked_with_that_of_its_event(
    traced: TestClient, spans: InMemorySpanExporter, keys: Keys
) -> None:
    traced.post("/v1/track", json=ADA, auth=(keys.write, ""), headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
    found = {span.name: span for span in spans.get_finished_spans()}
    request, ingest = found["POST /v1/track"], found["ingest"]
    assert f"{request.context.trace_id:032x}" == TRACE
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT
    assert f"{ingest.context.trace_id:032x}" == event_id("default", "shop", "m1")
    assert [link.context.span_id for link in ingest.links] == [request.context.span_id]


def test_no_span_names_a_person_and_probes_have_none(
    traced: TestClient, spans: InMemorySpanExporter, keys: Keys
) -> None:
    traced.post("/v1/track", json=ADA, auth=(keys.write, ""))
    traced.get("/v1/people/user_id:ada@example.com", headers=keys.bearer("admin"))
    for probe in ("/livez", "/readyz", "/metrics"):
        traced.get(probe, headers=keys.bearer("admin"))
    written = spans.get_finished_spans()
    requests = [span.name for span in written if span.name.startswith(("GET", "POST"))]
    assert requests == ["POST /v1/track", "GET /v1/people/{id}"]
    assert not [span for span in written if "ada" in f"{span.name} {dict(span.attributes or {})}"]


def test_a_caller_that_does_not_sample_gets_no_span(
    traced: TestClient, spans: InMemorySpanExporter, keys: Keys
) -> None:
    traced.get("/version", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert spans.get_finished_spans() == ()


def test_a_server_sends_one_trace_from_the_request_to_the_webhook(tmp_path: Path) -> None:
    with Receiver() as receiver, Receiver(lambda call: (200, {}, b"")) as collector:
        (tmp_path / "threadline.yaml").write_text(RULES.format(url=receiver.url()))
        environment = {
            "THREADLINE_TRACING": "true",
            "THREADLINE_WEBHOOK_HTTP": "true",
            "THREADLINE_WRITE_KEYS": "shop=wk-tracing",
            "THREADLINE_WEBHOOK_PRIVATE_ADDRESSES": "127.0.0.0/8",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}",
            "OTEL_SERVICE_NAME": "shop",
        }
        server = Process(tmp_path / "events.db", environment)
        try:
            httpx.post(f"{server.url}/v1/track", json=ADA, auth=("wk-tracing", "")).raise_for_status()
            deadline = time.monotonic() + 60
            while not receiver.calls and time.monotonic() < deadline:
                time.sleep(0.02)
        finally:
            assert server.stop() == 0
        written: dict[str, Span] = {}
        for call in collector.calls:
            assert call.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(call.body).resource_spans:
                assert "shop" in str(resource.resource)
                written.update({span.name: span for scope in resource.scope_spans for span in scope.spans})
    id = event_id("default", "shop", "m1")
    traced = {name for name, span in written.items() if span.trace_id.hex() == id}
    assert traced >= {"ingest", "commit", "policy rules", "outbox webhook", "send webhook", "record"}
    assert receiver.calls[0].headers["traceparent"] == f"00-{id}-{written['send webhook'].span_id.hex()}-01"
