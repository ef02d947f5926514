"""How far a request travels: calls of our functions for an event with one rule and for reads, in memory and warm."""

from __future__ import annotations

import http.client
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import msgspec

from bench.contest import in_child
from bench.profiled import Counted, Counter
from bench.row import Goal, Row, compared
from bench.server import READ_TOKEN, WRITE_KEY, Server
from bench.stage import Stage
from bench.trees import OURS, Tree

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
EVENT = "event"
WARMING, COUNTED = 30, 5
"""Events before those that are counted; of these the one with the fewest calls, beside which no timer was due."""
SETTLE_SECONDS = 0.1
"""Between an answer and the end of what its request has set off."""
GOAL, AIM = Goal("ratio", most=0.72), Goal("ratio", most=0.48)
"""450 and 300 calls are asked for where 45fdf71 makes 627; that number depends on event and rule, its shares less."""
FILES, RETURNS, READ_FILES = Goal("ours", most=50), Goal("ours", most=100), Goal("ours", most=45)
"""What one can follow in an hour: of one event with one rule files and returns, and the files of a person's read."""


READS = {
    "GET person": "/v1/people/user_id:ada",
    "GET decisions": "/v1/decisions?person=user_id:ada",
    "GET features as_of": "/v1/people/user_id:ada/features?as_of=2026-03-01T12:00:20Z",
}


def measure(stage: Stage) -> list[Row]:
    """Calls, functions, files, and returns to a file that had been left."""
    definitions = stage.folder / "calls.yaml"
    definitions.write_text(RULE)
    counts = {tree.name: _count(stage, tree, str(definitions)) for tree in stage.trees}
    rows = [
        compared("one event with one rule over HTTP, calls", _column(counts, EVENT, 0), "calls", GOAL, AIM),
        compared("functions called", _column(counts, EVENT, 1), "functions"),
        compared("files they are in", _column(counts, EVENT, 2), "files", FILES),
        compared("returns to a file left before", _column(counts, EVENT, 3), "returns", RETURNS),
        Row("GET person, files", counts[OURS.name]["GET person"].files, "files", goal=READ_FILES),
    ]
    ours = {name: counts[OURS.name][name] for name in READS}
    ours["YAML to catalogue"] = Counted(*in_child(_catalogue, str(definitions)))
    for name, count in ours.items():
        note = f"{count.functions} functions, {count.files} files, {count.returns} returns"
        rows.append(Row(f"{name}, calls", count.calls, "calls", note=note))
    return rows


def _column(counts: dict[str, dict[str, Counted]], name: str, number: int) -> dict[str, float]:
    return {tree: count[name][number] for tree, count in counts.items()}


def _catalogue(definitions: str) -> tuple[int, ...]:
    """Of reading definitions the second time: the first imports the modules."""
    from threadline.app import catalogue

    catalogue([Path(definitions)])
    counter = Counter()
    counter.on = True
    sys.setprofile(counter)
    catalogue([Path(definitions)])
    sys.setprofile(None)
    return tuple(counter.counted())


def _count(stage: Stage, tree: Tree, definitions: str) -> dict[str, Counted]:
    """Of one event, and of reads where it is our own tree: addresses were others in the earlier commit."""
    path = stage.folder / f"calls-{tree.name}.db"
    control = str(path.with_suffix(".socket"))
    settings = {"STORE": "memory:", "DEFINITIONS": definitions}
    with Server(path, tree, ("bench.profiled", control), **settings) as server, Client(control) as counting:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        for number in range(WARMING):
            _post(connection, number)

        def least(requests: Sequence[Callable[[], None]]) -> Counted:
            counts = []
            for request in requests:
                time.sleep(SETTLE_SECONDS)
                counting.send("begin")
                counting.recv()
                request()
                time.sleep(SETTLE_SECONDS)
                counting.send("end")
                counts.append(Counted(*counting.recv()))
            return min(counts)

        numbers = range(WARMING, WARMING + COUNTED)
        found = {EVENT: least([partial(_post, connection, number) for number in numbers])}
        for name, address in READS.items() if tree is OURS else ():
            _get(connection, address)
            found[name] = least([partial(_get, connection, address)] * COUNTED)
        connection.close()
    return found


def _get(connection: http.client.HTTPConnection, address: str) -> None:
    connection.request("GET", address, headers={"Authorization": f"Bearer {READ_TOKEN}"})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body


def _post(connection: http.client.HTTPConnection, number: int) -> None:
    message: dict[str, Any] = {
        "type": "track",
        "event": "purchase_completed",
        "messageId": f"order-{number}",
        "userId": "ada",
        "timestamp": f"2026-03-01T12:00:{number:02d}Z",
        "properties": {"order_id": f"order-{number}", "total": 80 + number, "currency": "EUR"},
    }
    credential = b64encode(f"{WRITE_KEY}:".encode()).decode()
    headers = {"Authorization": f"Basic {credential}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/batch", msgspec.json.encode({"batch": [message]}), headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
