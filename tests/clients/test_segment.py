"""Segment's clients for Python and node, unmodified: every call, plain and compressed, in batches."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

from tests.clients.calls import Call, Who, all_calls, check_thread
from tests.clients.conftest import RunNode
from tests.clients.network import Network
from tests.clients.server import Server

pytestmark = pytest.mark.client

ARGUMENTS = {
    "userId": "user_id",
    "anonymousId": "anonymous_id",
    "groupId": "group_id",
    "previousId": "previous_id",
    "messageId": "message_id",
}


def speak(client: Any, calls: Iterable[Call]) -> None:
    """Make the calls with a client for Python; Segment's and RudderStack's have the same methods."""
    for call in calls:
        given = {ARGUMENTS.get(name, name): value for name, value in call.items() if name != "type"}
        if "timestamp" in given:
            given["timestamp"] = datetime.fromisoformat(given["timestamp"])
        # They write into what they are given.
        given = {name: dict(value) if isinstance(value, dict) else value for name, value in given.items()}
        taken, _ = getattr(client, call["type"])(**given)
        assert taken


def python_client(url: str, write_key: str, failed: list[object], **options: Any) -> Any:
    analytics = pytest.importorskip("segment.analytics", reason="segment-analytics-python is missing: `make setup`")
    logging.getLogger("segment").setLevel(logging.CRITICAL)
    return analytics.Client(
        write_key, host=url, on_error=lambda error, batch: failed.append(error), upload_interval=0.1, **options
    )


@pytest.mark.parametrize("packed", [False, True])
def test_python(packed: bool, server: Server, network: Network, who: Who) -> None:
    failed: list[object] = []
    client = python_client(network.url, server.write_key, failed, gzip=packed)
    speak(client, all_calls(who))
    client.shutdown()
    assert failed == []
    assert {request.headers.get("content-encoding") for request in network.taken} == {"gzip" if packed else None}
    check_thread(server, who, all_calls(who), "analytics-python")


def test_python_one_by_one(server: Server, who: Who) -> None:
    client = python_client(server.url, server.write_key, [], sync_mode=True)
    speak(client, all_calls(who))
    check_thread(server, who, all_calls(who), "analytics-python")


def test_python_in_batches(server: Server, network: Network, who: Who) -> None:
    failed: list[object] = []
    client = python_client(network.url, server.write_key, failed, upload_size=100)
    calls = [
        {"type": "track", "userId": who.user, "event": "click", "properties": {"n": n}, "messageId": f"{who.user} {n}"}
        for n in range(1_000)
    ]
    speak(client, calls)
    client.shutdown()
    assert failed == []
    assert max(len(request.json()["batch"]) for request in network.taken) == 100
    # Its times have milliseconds only, so many are equal; the order in which they were recorded is that of the calls.
    events = sorted(server.events(f"user_id:{who.user}"), key=lambda event: event["sequence"])
    assert [event["properties"]["n"] for event in events] == list(range(1_000))


def test_python_is_told_what_is_wrong(server: Server, who: Who) -> None:
    failed: list[Any] = []
    client = python_client(server.url, "wk_nobody_has_this", failed)
    speak(client, all_calls(who)[:1])
    client.shutdown()
    # It takes both out of the body of the answer, and says "unknown" where one of them is missing.
    assert [(error.status, error.code) for error in failed] == [(401, "unauthorized")]
    assert "write key" in failed[0].message
    assert server.events(f"anonymous_id:{who.anonymous}") == []


def test_node(server: Server, who: Who, node: RunNode) -> None:
    failed = node("segment.mjs", host=server.url, writeKey=server.write_key, calls=all_calls(who))
    assert failed == []
    check_thread(server, who, all_calls(who), "@segment/analytics-node")


def test_node_in_batches(server: Server, network: Network, who: Who, node: RunNode) -> None:
    calls = [
        {"type": "track", "userId": who.user, "event": "click", "properties": {"n": n}, "messageId": f"{who.user} {n}"}
        for n in range(200)
    ]
    given = {"host": network.url, "writeKey": server.write_key, "calls": calls}
    assert node("segment.mjs", **given, options={"flushAt": 50}) == []
    assert [len(request.json()["batch"]) for request in network.taken] == [50] * 4
    assert {event["properties"]["n"] for event in server.events(f"user_id:{who.user}")} == set(range(200))
