"""The table's stream, followed shard by shard: pages that were written lately, without reading the table again.

What the feed gives is decided by the journal. The stream only brings the pages sooner and cheaper, so what it repeats
is known already, and what it no longer has is read from the table.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import LogEntry
from threadline.kernel.time import HOUR, Clock
from threadline.stores.dynamodb.client import Body, Client, Gone
from threadline.stores.dynamodb.layout import DEAD, PageKey, page_name, unpack_page

PAGES_MAX = 20_000
"""Pages kept in memory; a reader that is further behind than this reads the table."""
ROUNDS_MAX = 3
"""Passes of one read over the shards for pages that it still misses."""
RETENTION = 24 * HOUR
_SERVICE = "dynamodbstreams"

Numbered = list[tuple[int, LogEntry]]


class _Shard(NamedTuple):
    """Where reading stands in one shard."""

    iterator: str
    checkpoint: str
    """The sequence number of the last record read; empty before the first."""


class StreamTail:
    """Follows the stream of one table from the moment of its first use. Thread-safe."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._arn: str | None = None
        self._since = 0
        """Pages written before this instant may have passed before we listened, microseconds."""
        self._shards: dict[str, _Shard] = {}
        self._finished: set[str] = set()
        """Shards read to their end. Their children are read only then, so that no thread's pages change places."""
        self._pages: OrderedDict[PageKey, Numbered] = OrderedDict()

    def take(self, keys: list[PageKey]) -> dict[PageKey, Numbered]:
        """Those of the pages that have come by the stream; what is not among them is to be read from the table."""
        with self._lock:
            try:
                return self._take(keys)
            except (Gone, Unavailable):
                # No stream, or not now: the table has everything. Listening starts over at the next reading.
                self._arn = None
                return {}

    def _take(self, keys: list[PageKey]) -> dict[PageKey, Numbered]:
        if self._arn is None:
            self._start()
            return {}
        wanted = [key for key in keys if self._written_at(key) > max(self._since, self._clock() - RETENTION)]
        for _ in range(ROUNDS_MAX):
            if all(key in self._pages for key in wanted) or not self._read_shards():
                break
        return {key: self._pages[key] for key in wanted if key in self._pages}

    @staticmethod
    def _written_at(key: PageKey) -> int:
        return int(key.sort[17:33], 16)

    # --- shards -----------------------------------------------------------------------------

    def _start(self) -> None:
        table = self._client.call("DescribeTable", {"TableName": self._client.address.table})["Table"]
        specification = table.get("StreamSpecification") or {}
        if not specification.get("StreamEnabled"):
            raise Gone("the table has no stream")
        self._arn = table["LatestStreamArn"]
        self._shards.clear()
        self._pages.clear()
        self._finished = set()
        for shard in self._described():
            if "EndingSequenceNumber" in shard.get("SequenceNumberRange", {}):
                self._finished.add(shard["ShardId"])
            else:
                self._shards[shard["ShardId"]] = _Shard(self._iterator(shard["ShardId"], "LATEST"), "")
        self._since = self._clock()

    def _described(self) -> list[Body]:
        shards: list[Body] = []
        request: Body = {"StreamArn": self._arn}
        while True:
            description = self._client.call("DescribeStream", request, _SERVICE)["StreamDescription"]
            shards += description.get("Shards", [])
            last = description.get("LastEvaluatedShardId")
            if not last:
                return shards
            request["ExclusiveStartShardId"] = last

    def _iterator(self, shard: str, kind: str, checkpoint: str = "") -> str:
        request = {"StreamArn": self._arn, "ShardId": shard, "ShardIteratorType": kind}
        if checkpoint:
            request["SequenceNumber"] = checkpoint
        return str(self._client.call("GetShardIterator", request, _SERVICE)["ShardIterator"])

    def _read_shards(self) -> int:
        """Read each shard once; returns the number of records."""
        count = 0
        ended = False
        for name, shard in list(self._shards.items()):
            answer = self._records(name, shard)
            records = answer.get("Records", [])
            for record in records:
                self._keep(record)
            count += len(records)
            checkpoint = records[-1]["dynamodb"]["SequenceNumber"] if records else shard.checkpoint
            following = answer.get("NextShardIterator")
            if following:
                self._shards[name] = _Shard(following, checkpoint)
            else:
                del self._shards[name]
                self._finished.add(name)
                ended = True
        if ended or not self._shards:
            self._adopt()
        return count

    def _records(self, name: str, shard: _Shard) -> Body:
        try:
            return self._client.call("GetRecords", {"ShardIterator": shard.iterator}, _SERVICE)
        except Gone as gone:
            if "ExpiredIterator" not in str(gone) or not shard.checkpoint:
                raise
            # An iterator is good for fifteen minutes; the checkpoint for as long as the stream keeps its record.
            iterator = self._iterator(name, "AFTER_SEQUENCE_NUMBER", shard.checkpoint)
            return self._client.call("GetRecords", {"ShardIterator": iterator}, _SERVICE)

    def _adopt(self) -> None:
        """Go on with the children of finished shards, from their beginning."""
        described = self._described()
        names = {shard["ShardId"] for shard in described}
        for shard in described:
            name, parent = shard["ShardId"], shard.get("ParentShardId")
            if name in self._shards or name in self._finished:
                continue
            if parent is None or parent in self._finished or parent not in names:
                self._shards[name] = _Shard(self._iterator(name, "TRIM_HORIZON"), "")
        self._finished &= names

    def _keep(self, record: Body) -> None:
        image = record["dynamodb"].get("NewImage")
        if image is None:
            # A page that was replaced, because an event of it is erased.
            self._pages.pop(page_name(record["dynamodb"]["Keys"]), None)
            return
        if not image.get("pk", {}).get("S", "").startswith("t") or DEAD in image:
            return
        self._pages[page_name(image)] = unpack_page(image)
        while len(self._pages) > PAGES_MAX:
            self._pages.popitem(last=False)
