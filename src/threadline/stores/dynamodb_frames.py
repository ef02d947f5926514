"""Large values that change a little: a frame that stays, and beside it an item with the difference from it.

A person's item is written with every event of that person, and a transaction bills two units for each KB of it. So a
value beyond the first KB is put away once, as a frame under a key of its own; what is then rewritten is the difference,
which is the value deflated with the frame as dictionary. When the difference has grown too large, the value of that day
becomes the new frame, in the same transaction. An item that names a frame is therefore always beside that very frame.
"""

from __future__ import annotations

import threading
import zlib
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Key
from threadline.stores.dynamodb_client import Client
from threadline.stores.dynamodb_layout import (
    DIFFERENCE,
    FRAME,
    PK,
    POSITION,
    SK,
    VERSION,
    Attributes,
    content,
    item_key,
    packed,
)
from threadline.stores.dynamodb_reading import get_many, name_of

KIB = 1_024
_WINDOW = 32 * KIB
"""Deflate looks back so far, and no further."""
CACHE_BYTES_MAX = 64 * KIB * KIB
ATTEMPTS_MAX = 10
_OVERHEAD_BYTES = 80
"""What an item has beside its key and its value: version, position, frame, and the names of all."""


class Known(NamedTuple):
    """What is known of an item that stands beside a frame."""

    version: int
    stamp: str
    """Which frame: the place of its making."""
    frame: bytes | None
    """The value it holds; None if nobody has looked."""


class Shape(NamedTuple):
    """How a value is to be written."""

    value: Attributes
    frame: bytes | None = None
    """The value of a new frame; its stamp is the place of this very write."""
    stamp: str = ""
    """The frame that has to be there already."""


def difference(value: bytes, frame: bytes) -> bytes:
    """A value as it differs from a frame."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, frame[-_WINDOW:])
    return engine.compress(value) + engine.flush()


def restored(short: bytes, frame: bytes) -> bytes:
    """The value of which `difference` was told."""
    engine = zlib.decompressobj(-15, frame[-_WINDOW:])
    return engine.decompress(short) + engine.flush()


def shape(key: Key, value: bytes, known: Known | None, *, framed: bool) -> Shape:
    """The cheapest way to write a value in the long run. Without ``framed`` there must be no new frame."""
    full = packed(value)
    spare = KIB - _OVERHEAD_BYTES - len("".join(key).encode())
    size = sum(len(held["B"]) for held in full.values())
    if size <= spare:
        return Shape(full)
    if known is not None and known.frame is not None:
        short = difference(value, known.frame)
        if len(short) <= spare + (_kib_max(size) - 1) * KIB:
            return Shape({DIFFERENCE: {"B": short}}, stamp=known.stamp)
    if not framed:
        return Shape(full)
    return Shape({DIFFERENCE: {"B": difference(value, value)}}, frame=value)


def _kib_max(size: int) -> int:
    # A large frame is dear to write again, so that more of a difference is borne before that.
    return 1 if size < 8 * KIB else 2 if size < 32 * KIB else 4


def frame_key(key: Key) -> Attributes:
    """The primary key of an item's frame."""
    return _frame_of(item_key(key))


def _frame_of(item: Attributes) -> Attributes:
    return {PK: {"S": "f" + item[PK]["S"]}, SK: item[SK]}


class Frames:
    """The frames that this process has met, the latest of them in memory. Thread-safe."""

    def __init__(self, client: Client, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._client = client
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._bytes = 0

    def known(self, key: Key) -> Known | None:
        """What was last seen of an item with a frame; it may be out of date."""
        return self._known.get(name_of(item_key(key)))

    def learn(self, name: tuple[str, str], known: Known | None) -> None:
        """Remember what was read or written; None: there is no frame any more."""
        with self._lock:
            gone = self._known.pop(name, None)
            self._bytes -= len(gone.frame or b"") if gone is not None else 0
            if known is not None:
                self._known[name] = known
                self._bytes += len(known.frame or b"")
            while self._bytes > self._bytes_max:
                _, oldest = self._known.popitem(last=False)
                self._bytes -= len(oldest.frame or b"")

    def values(self, found: Sequence[Attributes]) -> list[tuple[Attributes, bytes] | None]:
        """Items as they are, each with its whole value. One that changes meanwhile is read again; None: it went away."""
        items: dict[tuple[str, str], Attributes] = {name_of(item): item for item in found}
        values: dict[tuple[str, str], bytes] = {}
        rest = list(items)
        for _ in range(ATTEMPTS_MAX):
            values.update({name: content(items[name]) for name in rest if name in items and FRAME not in items[name]})
            rest = [name for name in rest if name in items and FRAME in items[name]]
            values.update(self._whole({name: items[name] for name in rest}))
            rest = [name for name in rest if name not in values]
            if not rest:
                return [(items[name], values[name]) if name in items else None for name in map(name_of, found)]
            # The frame that was read is another one: the item has been written again since.
            fresh = get_many(self._client, [{PK: {"S": pk}, SK: {"S": sk}} for pk, sk in rest])
            for name in rest:
                items.pop(name)
            items.update(fresh)
        raise Unavailable("an item is rewritten faster than it can be read; try again")

    def _whole(self, items: dict[tuple[str, str], Attributes]) -> dict[tuple[str, str], bytes]:
        frames: dict[tuple[str, str], bytes] = {}
        missing = []
        for name, item in items.items():
            known = self._known.get(name)
            if known is not None and known.frame is not None and known.stamp == item[FRAME]["S"]:
                frames[name] = known.frame
            else:
                missing.append(name)
        found = get_many(self._client, [_frame_of(items[name]) for name in missing])
        for name in missing:
            frame = found.get(("f" + name[0], name[1]))
            if frame is not None and frame[POSITION] == items[name][FRAME]:
                frames[name] = content(frame)
        for name, frame_value in frames.items():
            item = items[name]
            self.learn(name, Known(int(item[VERSION]["N"]), item[FRAME]["S"], frame_value))
        return {name: restored(b64decode(items[name][DIFFERENCE]["B"]), frames[name]) for name in frames}
