"""Frames: the values from which items are stored as differences; found, cached, dissolved.

An item has the mark of a frame exactly as long as that very frame lies beside it, whether its value is a difference
from it or stands there whole. Writing a difference is conditional on the mark; writing a frame writes it; deleting
an item is conditional on there being none, after `Frames.dissolve` has removed it, which changes neither value nor
version. Items that expire have no frame, since nothing would expire it with them.
"""

from __future__ import annotations

import secrets
import threading
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Key
from threadline.stores.compression import item_damaged
from threadline.stores.dynamodb.client import Client, Refused
from threadline.stores.dynamodb.difference import Frame, restored
from threadline.stores.dynamodb.layout import (
    DEFLATED,
    DIFFERENCE,
    FRAME,
    POSITION,
    ROW,
    Attributes,
    content,
    frame_key,
    item_key,
    key_of,
    packed,
    version_of,
)
from threadline.stores.dynamodb.reading import get_many

CACHE_BYTES_MAX = 64 * 1_024 * 1_024
ATTEMPTS_MAX = 10


class Frames:
    """The frames of one table, those met last in memory. Thread-safe."""

    def __init__(self, client: Client, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._client = client
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._known: OrderedDict[Key, Frame] = OrderedDict()
        self._bytes = 0

    def known(self, key: Key) -> Frame | None:
        """The frame last seen; it may be out of date."""
        return self._known.get(key)

    def learn(self, key: Key, frame: Frame | None) -> None:
        """Cache a frame that was read or written; None: drop it."""
        with self._lock:
            gone = self._known.pop(key, None)
            self._bytes -= len(gone.value) if gone is not None else 0
            if frame is not None:
                self._known[key] = frame
                self._bytes += len(frame.value)
            while self._bytes > self._bytes_max:
                _, oldest = self._known.popitem(last=False)
                self._bytes -= len(oldest.value)

    def whole(self, raw: Iterable[Attributes]) -> list[tuple[Attributes, bytes]]:
        """Items with their values, in the order given. What is written meanwhile is read again, or gone."""
        items = {key_of(item): item for item in raw}
        values: dict[Key, bytes] = {}
        rest = items
        for _ in range(ATTEMPTS_MAX):
            values |= self._values(rest)
            stale = [key for key in rest if key not in values]
            if not stale:
                return [(item, values[key]) for key, item in items.items() if key in values]
            # These name another frame than is there: they were written again since they were read.
            rest = {key_of(item): item for item in get_many(self._client, [item_key(key) for key in stale]).values()}
            items |= rest
        raise Unavailable("an item is rewritten faster than it can be read; try again")

    def _values(self, items: Mapping[Key, Attributes]) -> dict[Key, bytes]:
        """The values of items, but not of those beside which another frame lies than they name."""
        short = {key: item for key, item in items.items() if DIFFERENCE in item}
        frames = {key: self.known(key) for key in short}
        missing = [frame_key(key) for key, frame in frames.items() if not _fits(frame, short[key])]
        for stored in get_many(self._client, missing).values():
            frame = Frame(stored[POSITION], version_of(stored), _content(stored))
            frames[key_of(stored)] = frame
            self.learn(key_of(stored), frame)
        values = {key: _content(item) for key, item in items.items() if key not in short}
        for key, item in short.items():
            near = frames[key]
            if near is not None and _fits(near, item):
                values[key] = restored(b64decode(item[DIFFERENCE]["B"]), near.value)
        return values

    def dissolve(self, key: Key) -> None:
        """Store an item's whole value and remove its frame. Value and version stay the same."""
        for item, value in self.whole(get_many(self._client, [item_key(key)]).values()):
            if FRAME in item:
                self._dissolve(key, item, value)
        self.learn(key, None)

    def _dissolve(self, key: Key, item: Attributes, value: bytes) -> None:
        table = self._client.address.table
        attributes = {
            name: attribute for name, attribute in item.items() if name not in (ROW, DEFLATED, DIFFERENCE, FRAME)
        }
        put = {
            "TableName": table,
            "Item": {**attributes, **packed(value)},
            # No two writes leave the same position, so it is still the same value.
            "ConditionExpression": "#p = :p AND #f = :f",
            "ExpressionAttributeNames": {"#p": POSITION, "#f": FRAME},
            "ExpressionAttributeValues": {":p": item[POSITION], ":f": item[FRAME]},
        }
        actions = [{"Put": put}, {"Delete": {"TableName": table, "Key": frame_key(key)}}]
        request = {"TransactItems": actions, "ClientRequestToken": secrets.token_hex(16)}
        try:
            self._client.call("TransactWriteItems", {**request, "ReturnConsumedCapacity": "TOTAL"})
        except Refused:
            return  # another process has written it; a caller that still meets a frame tries again


def _content(item: Attributes) -> bytes:
    try:
        return content(item)
    except ValueError as error:
        raise item_damaged(key_of(item), version_of(item), f": {error}") from None


def _fits(frame: Frame | None, item: Attributes) -> bool:
    return frame is not None and frame.mark == item[FRAME]
