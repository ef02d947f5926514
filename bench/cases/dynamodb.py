"""DynamoDB: units per event, reckoned from what is really asked of an emulator, beside the five source designs'."""

from __future__ import annotations

import tempfile
from base64 import b64decode
from typing import Any

from bench.dynamodb_designs import DESIGNS, KIB, Units
from bench.row import Goal, Row
from bench.stage import Stage, live_world
from tests.servers.dynamodb import ministack
from threadline.app import catalogue
from threadline.capabilities.profile.features import load_definitions
from threadline.engine.engine import Engine
from threadline.kernel.event import Event
from threadline.kernel.store import feed_pages
from threadline.kernel.time import system_clock
from threadline.settings import Settings
from threadline.stores.dynamodb.address import parse
from threadline.stores.dynamodb.client import Client
from threadline.stores.dynamodb.store import DynamoStore, migrate

PEOPLE, HISTORY, MEASURED = 400, 4_000, 1_200
"""Ten events a person before the count begins, as in the standard world."""
BATCHES = (1, 4, 100)
"""Events of a call: one alone, what callers at the same moment share, an import."""
GOALS = {1: Goal("ours", most=8.0), 4: Goal("ratio", most=0.5), 100: Goal("ours", most=5.3)}
"""By events of a call: no more write units than at 45fdf71, whose 7.97 and 5.27 move by 0.02 with the hour at which the
world begins; or half of the five designs'."""
AIMS = {1: Goal("ours", most=5.0), 100: Goal("ours", most=3.5)}
WRITE_DOLLARS, READ_DOLLARS = 0.625, 0.125
"""A million on-demand request units in us-east-1, as published since November 2024."""


class Reckoning(Client):
    """A client that reckons what each request costs by the sizes of items, beside what the server says of it."""

    def __init__(self, address: Any) -> None:
        super().__init__(address)
        self.written = 0.0
        self.read = 0.0
        self.checked: list[tuple[float, float]] = []
        """Of transactions of new items alone, which can be reckoned from the request: ours, and the server's."""

    @property
    def spent(self) -> Units:
        """All so far."""
        return Units(self.written, self.read)

    def call(self, operation: str, body: Any, service: str = "dynamodb") -> Any:
        """Ask, and reckon."""
        answer = super().call(operation, body, service)
        consumed = answer.get("ConsumedCapacity") or []
        told = sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))
        written, read = (0.0, told) if operation.endswith(("GetItem", "Query", "Scan")) else (told, 0.0)
        if operation == "TransactWriteItems" and all(map(_is_new, body["TransactItems"])):
            ours = sum(2 * -(-stored_bytes(each["Put"]["Item"]) // KIB) for each in body["TransactItems"])
            self.checked.append((ours, written))
        if operation == "BatchGetItem":
            # A key that is not there is billed like the smallest item, which the emulator leaves out, and what need not
            # be consistent is half as dear.
            [asked] = body["RequestItems"].values()
            [found] = answer["Responses"].values()
            whole = sum(-(-stored_bytes(item) // (4 * KIB)) for item in found) + len(asked["Keys"]) - len(found)
            read = whole if asked["ConsistentRead"] else whole / 2
        self.written += written
        self.read += read
        return answer


def _is_new(action: Any) -> bool:
    # A write that replaces is billed by the larger of the two items, and the request shows one only.
    return "attribute_not_exists(pk)" in action.get("Put", {}).get("ConditionExpression", "")


def stored_bytes(item: Any) -> int:
    """The size of an item in DynamoDB's JSON; source: its developer guide, "Item sizes and formats"."""
    size = 0
    for name, typed in item.items():
        [(kind, value)] = typed.items()
        if kind == "N":
            size += len(name) + (len(value.lstrip("-")) + 1) // 2 + 1 + value.startswith("-")
        elif kind == "B":
            size += len(name) + len(value if isinstance(value, bytes) else b64decode(value))
        else:
            size += len(name) + len(value.encode())
    return size


def measure(stage: Stage) -> list[Row]:
    """Units per event, for calls of several sizes and by the five designs."""
    world = live_world(stage.world.seed, HISTORY, PEOPLE)
    events = list(world.events(HISTORY + MEASURED * len(BATCHES)))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        url = ministack().url(folder)
        migrate(url)
        client = Reckoning(parse(url))
        store = DynamoStore(url, system_clock, client=client)
        on = Engine(store, catalogue(), system_clock)
        on.shared.refresh_seconds = Settings().rules_refresh_seconds  # as it ships
        _record(on, events[:HISTORY], 100)
        together = _designs(events[HISTORY : HISTORY + MEASURED])
        for number, size in enumerate(BATCHES):
            first = HISTORY + number * MEASURED
            rows.append(_row(on, client, events[first : first + MEASURED], size, together))
        rows.append(_feed_row(store, client, len(events)))
        store.close()
    assert client.checked
    assert all(ours == told for ours, told in client.checked), "we reckon otherwise than the server"
    for name, units in together.items():
        rows.append(Row(f"source design: {name}", units.write, "write units", note=f"{units.read:.2f} read units"))
    return rows


def _record(on: Engine, events: list[Event], size: int) -> None:
    for first in range(0, len(events), size):
        receipts = on.recorder.record(events[first : first + size])
        assert {receipt.status for receipt in receipts} == {"accepted"}


def _row(on: Engine, client: Reckoning, events: list[Event], size: int, designs: dict[str, Units]) -> Row:
    before = client.spent
    _record(on, events, size)
    written, read = (now - then for now, then in zip(client.spent, before, strict=True))
    theirs = sum(units.write for units in designs.values())
    theirs_read = sum(units.read for units in designs.values())
    dollars = (written * WRITE_DOLLARS + read * READ_DOLLARS) / len(events)
    reads = f"{read / len(events):.2f} read units, {read / len(events) / theirs_read:.2f} of theirs"
    note = f"{reads}; {dollars:.2f} dollars a million events; beside all five designs"
    name = f"all that ships, events of a call: {size:,}"
    return Row(name, written / len(events), "write units", theirs, GOALS[size], note, AIMS.get(size))


def _feed_row(store: DynamoStore, client: Reckoning, count: int) -> Row:
    before = client.spent
    entries = sum(1 for _ in feed_pages(store))
    return Row(
        "the feed from its start", (client.spent.read - before.read) / entries, "read units", note=f"{entries:,}"
    )


def _designs(events: list[Event]) -> dict[str, Units]:
    names = load_definitions().names
    spent = {name: reckon(events, names) for name, reckon in DESIGNS.items()}
    return {name: Units(units.write / len(events), units.read / len(events)) for name, units in spent.items()}
