"""How far one event travels: calls of our functions for one event with one rule over HTTP, in memory and warm."""

from __future__ import annotations

import http.client
import time
from base64 import b64encode
from multiprocessing.connection import Client
from typing import Any

import msgspec

from bench.profiled import Counted
from bench.row import Goal, Row, compared
from bench.server import WRITE_KEY, Server
from bench.stage import Stage
from bench.trees import Tree

RULE = """
rules:
  large-order:
    version: 1
    conditions:
      all:
        - {field: event.properties.total, greater_than: 50}
        - {field: event.properties.currency, equals: EUR}
    actions: [{store_decision: {result: approve}}]
rule_sets: {orders: {events: [purchase_completed], rules: [large-order]}}
"""
WARMING, COUNTED = 30, 5
"""Events before those that are counted; of these the one with the fewest calls, beside which no timer was due."""
SETTLE_SECONDS = 0.1
"""Between an answer and the end of what its request has set off."""
GOAL, AIM = Goal("ratio", most=0.72), Goal("ratio", most=0.48)
"""450 and 300 calls are asked for where 45fdf71 makes 627; that number depends on event and rule, its shares less."""


def measure(stage: Stage) -> list[Row]:
    """Calls, functions, files, and returns to a file that had been left."""
    definitions = stage.folder / "calls.yaml"
    definitions.write_text(RULE)
    counts = {tree.name: _count(stage, tree, str(definitions)) for tree in stage.trees}
    return [
        compared("one event with one rule over HTTP, calls", _column(counts, 0), "calls", GOAL, AIM),
        compared("functions called", _column(counts, 1), "functions"),
        compared("files they are in", _column(counts, 2), "files"),
        compared("returns to a file left before", _column(counts, 3), "returns"),
    ]


def _column(counts: dict[str, Counted], number: int) -> dict[str, float]:
    return {name: count[number] for name, count in counts.items()}


def _count(stage: Stage, tree: Tree, definitions: str) -> Counted:
    path = stage.folder / f"calls-{tree.name}.db"
    control = str(path.with_suffix(".socket"))
    settings = {"STORE": "memory:", "DEFINITIONS": definitions}
    with Server(path, tree, ("bench.profiled", control), **settings) as server, Client(control) as counting:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        for number in range(WARMING):
            _post(connection, number)
        counts = []
        for number in range(WARMING, WARMING + COUNTED):
            time.sleep(SETTLE_SECONDS)
            counting.send("begin")
            counting.recv()
            _post(connection, number)
            time.sleep(SETTLE_SECONDS)
            counting.send("end")
            counts.append(Counted(*counting.recv()))
        connection.close()
    return min(counts)


def _post(connection: http.client.HTTPConnection, number: int) -> None:
    message: dict[str, Any] = {
        "type": "track", "event": "purchase_completed", "messageId": f"order-{number}", "userId": "ada",
        "timestamp": f"2026-03-01T12:00:{number:02d}Z",
        "properties": {"order_id": f"order-{number}", "total": 80 + number, "currency": "EUR"},
    }  # fmt: skip
    credential = b64encode(f"{WRITE_KEY}:".encode()).decode()
    headers = {"Authorization": f"Basic {credential}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/batch", msgspec.json.encode({"batch": [message]}), headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
