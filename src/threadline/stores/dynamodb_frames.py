"""Large values that change a little: a frame that stays, and beside it an item with the difference from it.

A person's item is written with every event of that person, and a transaction bills two units for each KB of it. So a
value beyond the first KB is put away once, as a frame under a key of its own; what is then rewritten is the difference,
which is the value deflated with the frame as dictionary. When the difference has grown too large, the value of that day
becomes the new frame, in the same transaction.

An item has the mark of a frame exactly as long as that very frame lies beside it, whether its value is a difference
from it or stands there whole. Whoever writes a difference makes the mark a condition; whoever makes a frame writes the
mark with it; whoever deletes an item makes it a condition that there is none, and first has `Frames.dissolve` take it
away, which changes neither value nor version. Items that expire have no frame, since nothing would expire it with them.
"""

from __future__ import annotations

import secrets
import threading
import zlib
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Key
from threadline.stores.dynamodb_client import Client, Refused
from threadline.stores.dynamodb_layout import (
    DEFLATED,
    DIFFERENCE,
    FRAME,
    PK,
    PLAIN,
    POSITION,
    SK,
    Attributes,
    content,
    item_key,
    packed,
)
from threadline.stores.dynamodb_reading import Name, get_many, name_of

KIB = 1_024
BLOCK_BYTES, SHIFT_BYTES_MAX = 16 * KIB, 7 * KIB
"""Deflate looks back 32 KB: each block is told by what lies in the frame from a little before it to a little behind."""
CACHE_BYTES_MAX = 64 * KIB * KIB
ATTEMPTS_MAX = 10
_OVERHEAD_BYTES = 80
"""What an item has beside its key and its value: version, position, frame, and the names of all."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode


class Known(NamedTuple):
    """The frame that was last seen beside an item."""

    mark: str
    """Which frame: the place of its making, which no other has."""
    value: bytes


class Shape(NamedTuple):
    """How a value is to be written."""

    value: Attributes
    frame: bytes | None = None
    """The value of a new frame; its mark is the place of this very write."""
    mark: str = ""
    """The frame that has to be there already; empty: none has to."""


def difference(value: bytes, frame: bytes) -> bytes:
    """A value as it differs from a frame."""
    blocks = []
    for start in range(0, len(value), BLOCK_BYTES):
        engine = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _around(frame, start))
        blocks.append(engine.compress(value[start : start + BLOCK_BYTES]) + engine.flush())
    return _pack(blocks)


def restored(short: bytes, frame: bytes) -> bytes:
    """The value of which `difference` was told."""
    blocks = []
    for number, block in enumerate(_unpack(short)):
        engine = zlib.decompressobj(-15, _around(frame, number * BLOCK_BYTES))
        blocks.append(engine.decompress(block) + engine.flush())
    return b"".join(blocks)


def _around(frame: bytes, start: int) -> bytes:
    return frame[max(0, start - SHIFT_BYTES_MAX) : start + BLOCK_BYTES + SHIFT_BYTES_MAX]


def shape(key: Key, value: bytes, known: Known | None, *, room: bool) -> Shape:
    """The cheapest way to write a value in the long run. Without ``room`` there is no new frame."""
    full = packed(value)
    spare = KIB - _OVERHEAD_BYTES - len("".join(key).encode())
    size = sum(len(held["B"]) for held in full.values())
    if size <= spare:
        return Shape(full)
    if known is not None:
        short = difference(value, known.value)
        if len(short) <= spare + (_kib_max(size) - 1) * KIB:
            return Shape({DIFFERENCE: {"B": short}}, mark=known.mark)
    if not room:
        return Shape(full)
    return Shape({DIFFERENCE: {"B": difference(value, value)}}, frame=value)


def _kib_max(size: int) -> int:
    # A large frame is dear to write again, so that more of a difference is borne before that.
    return 1 if size < 8 * KIB else 2 if size < 32 * KIB else 4


def frame_key(item: Attributes) -> Attributes:
    """The primary key of an item's frame."""
    return {PK: {"S": "f" + item[PK]["S"]}, SK: item[SK]}


class Frames:
    """The frames that this process has met, the latest of them in memory. Thread-safe."""

    def __init__(self, client: Client, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._client = client
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._known: OrderedDict[Name, Known] = OrderedDict()
        self._bytes = 0

    def known(self, key: Key) -> Known | None:
        """What was last seen beside an item; it may be out of date."""
        return self._known.get(name_of(item_key(key)))

    def learn(self, name: Name, known: Known | None) -> None:
        """Remember what was read or written; None: forget what was known."""
        with self._lock:
            gone = self._known.pop(name, None)
            self._bytes -= len(gone.value) if gone is not None else 0
            if known is not None:
                self._known[name] = known
                self._bytes += len(known.value)
            while self._bytes > self._bytes_max:
                _, oldest = self._known.popitem(last=False)
                self._bytes -= len(oldest.value)

    def values(self, found: Sequence[Attributes]) -> list[tuple[Attributes, bytes] | None]:
        """Items as they are, each with its whole value. What changes meanwhile is read again; None: it went away."""
        items: dict[Name, Attributes] = {name_of(item): item for item in found}
        values: dict[Name, bytes] = {}
        rest = list(items)
        for _ in range(ATTEMPTS_MAX):
            short = {name: items[name] for name in rest if name in items and DIFFERENCE in items[name]}
            values |= {name: content(items[name]) for name in rest if name in items and name not in short}
            values |= self._whole(short)
            rest = [name for name in short if name not in values]
            if not rest:
                return [(items[name], values[name]) if name in items else None for name in map(name_of, found)]
            # The frame that was read is another one: the item has been written again since.
            fresh = get_many(self._client, [{PK: {"S": pk}, SK: {"S": sk}} for pk, sk in rest])
            for name in rest:
                del items[name]
            items |= fresh
        raise Unavailable("an item is rewritten faster than it can be read; try again")

    def _whole(self, items: dict[Name, Attributes]) -> dict[Name, bytes]:
        """The values of those items whose frames are the ones that they name."""
        missing = [frame_key(item) for name, item in items.items() if not self._has(name, item)]
        found = get_many(self._client, missing)
        values = {}
        for name, item in items.items():
            known = self._known.get(name)
            frame = found.get(("f" + name[0], name[1]))
            if frame is not None:
                known = Known(frame[POSITION]["S"], content(frame))
                self.learn(name, known)
            if known is not None and known.mark == item[FRAME]["S"]:
                values[name] = restored(b64decode(item[DIFFERENCE]["B"]), known.value)
        return values

    def _has(self, name: Name, item: Attributes) -> bool:
        known = self._known.get(name)
        return known is not None and known.mark == item[FRAME]["S"]

    def dissolve(self, name: Name) -> None:
        """Put an item's whole value into it and take its frame away. To readers and writers nothing has changed."""
        self.learn(name, None)
        key = {PK: {"S": name[0]}, SK: {"S": name[1]}}
        found = get_many(self._client, [key]).get(name)
        whole = self.values([found])[0] if found is not None else None
        if whole is None or FRAME not in whole[0]:
            return
        item, value = whole
        table = self._client.address.table
        [(held, whole_value)] = packed(value).items()
        other = PLAIN if held == DEFLATED else DEFLATED
        update = {
            "TableName": table,
            "Key": key,
            "UpdateExpression": f"SET #v = :v REMOVE #{other}, #{DIFFERENCE}, #{FRAME}",
            # No two writes leave the same position, so it is still the same value.
            "ConditionExpression": f"#{POSITION} = :p AND #{FRAME} = :f",
            "ExpressionAttributeNames": {
                "#v": held, **{f"#{name}": name for name in (other, DIFFERENCE, FRAME, POSITION)},
            },
            "ExpressionAttributeValues": {":v": whole_value, ":p": item[POSITION], ":f": item[FRAME]},
        }  # fmt: skip
        actions = [{"Update": update}, {"Delete": {"TableName": table, "Key": frame_key(key)}}]
        request = {"TransactItems": actions, "ClientRequestToken": secrets.token_hex(16)}
        try:
            self._client.call("TransactWriteItems", {**request, "ReturnConsumedCapacity": "TOTAL"})
        except Refused:
            return  # somebody else has written it; whoever still meets a frame there comes again
