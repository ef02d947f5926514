"""The tail of a stream: shards split and closed, iterators and records that expire, and no page that is wrong."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from threadline.kernel.store import LogEntry
from threadline.kernel.time import HOUR, SECOND
from threadline.stores.dynamodb.client import Gone
from threadline.stores.dynamodb.layout import PageKey, Place, pack_page, page_key
from threadline.stores.dynamodb.stream import StreamTail
from threadline.testing.store_cases import entry

THREADS = [f"{number:032x}" for number in range(1, 5)]
TAKES = 12
"""Readings within which the tail has come through any number of splits that these scripts make."""


class _Stream:
    """The service: records in shards that form a tree, iterators that expire. It answers as `Client.call` does."""

    def __init__(self) -> None:
        self.address = SimpleNamespace(table="people")
        self.now = 1_800_000_000 * SECOND
        self.numbers = count(1)
        self.shards: dict[str, dict[str, Any]] = {}
        self.iterators: dict[str, tuple[str, int]] = {}
        self.expired: set[str] = set()
        self.open("s0", None)
        self.open("s1", None)

    def clock(self) -> int:
        self.now += 1
        return self.now

    def open(self, name: str, parent: str | None) -> None:
        self.shards[name] = {"parent": parent, "records": [], "closed": False}

    @property
    def leaves(self) -> list[str]:
        return sorted(name for name, shard in self.shards.items() if not shard["closed"])

    def write(self, record: dict[str, Any], thread: str, *, twice: bool = False) -> None:
        leaves = self.leaves
        records = self.shards[leaves[int(thread, 16) % len(leaves)]]["records"]
        for _ in range(2 if twice else 1):
            records.append({"dynamodb": {**record, "SequenceNumber": str(next(self.numbers))}})

    def split(self, which: int, into: int) -> None:
        """Close a shard, and open others in its place."""
        parent = self.leaves[which % len(self.leaves)]
        self.shards[parent]["closed"] = True
        for _ in range(into):
            self.open(f"s{next(self.numbers)}", parent)

    def a_day_passes(self) -> None:
        """Everything that was there is gone, and so are the shards that were closed."""
        self.now += 25 * HOUR
        self.shards = {name: shard for name, shard in self.shards.items() if not shard["closed"]}
        for shard in self.shards.values():
            shard["records"] = [None] * len(shard["records"])

    def call(self, operation: str, body: dict[str, Any], service: str = "dynamodb") -> dict[str, Any]:
        return getattr(self, operation)(body)  # type: ignore[no-any-return]

    def DescribeTable(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 — the service's own names
        return {"Table": {"StreamSpecification": {"StreamEnabled": True}, "LatestStreamArn": "arn"}}

    def DescribeStream(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        names = sorted(self.shards)
        start = names.index(body["ExclusiveStartShardId"]) + 1 if "ExclusiveStartShardId" in body else 0
        page = names[start : start + 2]
        found = [
            {
                "ShardId": name,
                **({"ParentShardId": parent} if (parent := self.shards[name]["parent"]) else {}),
                "SequenceNumberRange": {"EndingSequenceNumber": "9"} if self.shards[name]["closed"] else {},
            }
            for name in page
        ]
        more = {"LastEvaluatedShardId": page[-1]} if start + 2 < len(names) else {}
        return {"StreamDescription": {"Shards": found, **more}}

    def GetShardIterator(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if body["ShardId"] not in self.shards:
            raise Gone("ResourceNotFoundException: the shard is gone")
        records = self.shards[body["ShardId"]]["records"]
        at = {"LATEST": len(records), "TRIM_HORIZON": 0}.get(body["ShardIteratorType"])
        if at is None:
            numbers = [each and each["dynamodb"]["SequenceNumber"] for each in records]
            if body["SequenceNumber"] not in numbers:
                raise Gone("TrimmedDataAccessException: the record is gone")
            at = numbers.index(body["SequenceNumber"]) + 1
        token = f"i{next(self.numbers)}"
        self.iterators[token] = (body["ShardId"], at)
        return {"ShardIterator": token}

    def GetRecords(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        token = body["ShardIterator"]
        if token in self.expired:
            raise Gone("ExpiredIteratorException: fifteen minutes have passed")
        name, at = self.iterators[token]
        if name not in self.shards:
            raise Gone("ResourceNotFoundException: the shard is gone")
        shard = self.shards[name]
        page = [each for each in shard["records"][at : at + 2] if each is not None]
        after = min(at + 2, len(shard["records"]))
        if shard["closed"] and after == len(shard["records"]):
            return {"Records": page}
        following = f"i{next(self.numbers)}"
        self.iterators[following] = (name, after)
        return {"Records": page, "NextShardIterator": following}

    def expire(self) -> None:
        self.expired |= self.iterators.keys()


class _Stage:
    def __init__(self) -> None:
        self.stream = _Stream()
        self.tail = StreamTail(self.stream, self.stream.clock)  # type: ignore[arg-type]
        self.pages: dict[PageKey, list[tuple[int, LogEntry]]] = {}
        self.tail.take([])

    def write(self, *, twice: bool = False) -> PageKey:
        number = len(self.pages)
        thread = THREADS[number % len(THREADS)]
        event = entry(number + 1, thread)
        key = Place(f"{self.stream.clock():016x}{'ab' * 4}", 0).page(thread, event.occurred_at, 0)
        self.pages[key] = [(0, event)]
        image = msgspec.json.decode(msgspec.json.encode({**page_key(key), **pack_page(self.pages[key])}))
        self.stream.write({"NewImage": image}, thread, twice=twice)
        return key

    def take(self) -> dict[PageKey, list[tuple[int, LogEntry]]]:
        found = self.tail.take(list(self.pages))
        assert found == {key: self.pages[key] for key in found}, "what it has is what was written"
        return found


ACTIONS = ["write", "write twice", "split", "roll", "expire", "take", "a day passes"]


@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5)), max_size=20))
@example([("write", 0), ("split", 0), ("write", 0), ("split", 0), ("split", 1), ("write", 0), ("take", 0)])
@example([("write", 0), ("take", 0), ("expire", 0), ("write", 0), ("take", 0), ("a day passes", 0), ("take", 0)])
@example([("split", 0), ("a day passes", 0), ("write", 0), ("take", 0)])
def test_every_page_that_comes_is_right_and_whatever_happened_new_ones_come(script: list[tuple[str, int]]) -> None:
    stage = _Stage()
    stream = stage.stream
    for action, which in script:
        match action:
            case "split" | "roll":
                stream.split(which, 2 if action == "split" else 1)
            case "expire":
                stream.expire()
            case "a day passes":
                stream.a_day_passes()
            case "take":
                stage.take()
            case _:
                stage.write(twice=action == "write twice")
    stage.write()  # only what was written lately is looked for, and so an iterator that has expired is met
    for _ in range(TAKES):
        stage.take()
    late = [stage.write() for _ in range(8)]
    found: dict[PageKey, Any] = {}
    for _ in range(TAKES):
        found |= stage.take()
    assert set(late) <= found.keys()


def test_pages_of_a_shard_that_was_split_twice_come_from_its_grandchildren() -> None:
    stage = _Stage()
    for _ in range(3):
        stage.write()
        stage.stream.split(0, 2)
    last = [stage.write() for _ in range(4)]
    found: dict[PageKey, Any] = {}
    for _ in range(TAKES):
        found |= stage.take()
    assert found.keys() == stage.pages.keys()
    assert set(last) <= found.keys()
