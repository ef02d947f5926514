"""The CloudEvents SDKs for Python and node, unmodified, in the three modes of HTTP."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.clients.calls import Who
from tests.clients.conftest import RunNode
from tests.clients.server import Server
from threadline.kernel.time import parse_time

pytestmark = pytest.mark.client

DATA: dict[str, Any] = {
    "total": 29.33,
    "currency": "EUR",
    "items": [{"sku": "a", "quantity": 2}, None, True],
    "note": "Zoë “quoted” 100 % \U0001f9f5",
}


def events_of(who: Who, mode: str) -> list[dict[str, Any]]:
    """Events with every attribute that the specification knows, and values that have to be escaped in headers."""
    return [
        {
            "id": f"{who.user} {mode} {index}",
            "source": "/shop/orders",
            "type": type_,
            "subject": f"user_id:{who.user}",
            "time": f"2026-01-0{index + 1}T10:00:00.123Z",
            "dataschema": "https://shop.example/order#1",
            "datacontenttype": "application/json",
            "comment": "100 % „Zoë“ \U0001f9f5",
            "data": {**DATA, "n": index},
        }
        for index, type_ in enumerate(("purchase_completed", "com.shop.order.shipped"))
    ]


def check(server: Server, who: Who, sent: list[dict[str, Any]]) -> None:
    events = server.events(f"user_id:{who.user}")
    assert len(events) == len(sent)
    for event, told in zip(events, sent, strict=True):
        assert (event["type"], event["properties"]) == (told["type"], told["data"])
        assert parse_time(event["occurred_at"]) == parse_time(event["original_time"]) == parse_time(told["time"])
        assert event["schema_version"] == told["dataschema"]
        assert event["context"]["comment"] == told["comment"]
        assert server.message(f"{told['source']} {told['id']}")["outcome"] == "accepted"
    assert server.rejected(who.user) == []


def python_messages(events: list[dict[str, Any]], mode: str) -> list[Any]:
    """What the SDK makes of events, as (headers, body)."""
    core = pytest.importorskip("cloudevents.core", reason="cloudevents is missing: `make setup`")
    assert core is not None
    from cloudevents.core.bindings import http
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    write = http.to_binary if mode == "binary" else http.to_structured
    made = []
    for event in events:
        attributes = {name: value for name, value in event.items() if name != "data"}
        attributes |= {"specversion": "1.0", "time": datetime.fromisoformat(event["time"])}
        made.append(write(CloudEvent(attributes, event["data"]), JSONFormat()))
    if mode != "batch":
        return [(message.headers, message.body) for message in made]
    # The SDK has no batches: the array is ours, each event in it is its own.
    body = b"[" + b",".join(message.body for message in made) + b"]"
    return [({"content-type": "application/cloudevents-batch+json"}, body)]


@pytest.mark.parametrize("mode", ["structured", "binary", "batch"])
def test_python(mode: str, server: Server, who: Who) -> None:
    sent = events_of(who, mode)
    for count in ("accepted", "duplicates"):
        outcomes = []
        for headers, body in python_messages(sent, mode):
            headers = {**headers, "Authorization": f"Bearer {server.write_key}"}
            answer = httpx.post(f"{server.url}/v1/cloudevents", headers=headers, content=body)
            assert answer.status_code == 200, answer.text
            outcomes.append(answer.json())
        assert sum(outcome[count] for outcome in outcomes) == len(sent), json.dumps(outcomes)
    check(server, who, sent)


@pytest.mark.parametrize("mode", ["structured", "binary", "batch"])
def test_node(mode: str, server: Server, who: Who, node: RunNode) -> None:
    sent = events_of(who, mode)
    if mode == "binary":
        # It writes into headers what it is given, unescaped, so it cannot send what is not in ASCII.
        sent = [{**event, "comment": '100 % "quoted"'} for event in sent]
    # A webhook sender that can be given nothing but an address carries the key in it.
    url = f"{server.url}/v1/cloudevents?access_token={server.write_key}"
    for count in ("accepted", "duplicates"):
        outcomes = node("cloudevents.mjs", url=url, events=sent, mode=mode)
        assert sum(outcome[count] for outcome in outcomes) == len(sent), json.dumps(outcomes)
    check(server, who, sent)
