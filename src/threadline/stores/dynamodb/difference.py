"""A large value that changes a little, stored as its difference from a frame where that pays. No I/O.

A person's item is written with every event of that person, and a transaction bills two units for each KB of it. So a
value of more than a KB is put away once as a frame, an item of its own, and what is written from then on is the value
deflated with the frame as dictionary. When that has grown too large, the value of that day becomes the next frame.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from threadline.kernel.store import Key
from threadline.stores.dynamodb.layout import DIFFERENCE, Attributes, packed

KIB = 1_024
BLOCK_BYTES, SHIFT_BYTES_MAX = 16 * KIB, 7 * KIB
"""Deflate looks back 32 KB: the dictionary of a block is the frame around the block's own position."""
_OVERHEAD_BYTES = 43
"""What an item has beside its key and its value: version, position, mark, and the names of all."""


class Frame(NamedTuple):
    """The frame that lies beside an item."""

    mark: Attributes
    """Its mark: the position at which it was made, which is unique."""
    version: int
    """The item's when the frame was made."""
    value: bytes


class Shape(NamedTuple):
    """How a value is to be written."""

    attributes: Attributes
    mark: Attributes | None = None
    """Of the frame that has to be there; None: whatever is there."""
    framed: bool = False
    """Whether the value becomes the item's new frame, too."""


def shape(key: Key, value: bytes, version: int, frame: Frame | None, *, room: bool) -> Shape:
    """The cheapest way to write a value that is to have this version, in the long run. Without ``room`` no new frame.

    A difference of more than a KB is borne until a new frame would have been cheaper for all writes since the last.
    """
    whole = packed(value)
    units = _units(key, whole)
    if units == 1:
        return Shape(whole)
    if frame is not None:
        short = {DIFFERENCE: {"B": difference(value, frame.value)}}
        more = _units(key, short) - 1
        if more < units - 1 and (more * (version - frame.version) < units or not room):
            return Shape(short, frame.mark)
    return Shape({DIFFERENCE: {"B": difference(value, value)}}, framed=True) if room else Shape(whole)


def _units(key: Key, stored: Attributes) -> int:
    size = _OVERHEAD_BYTES + len("".join(key).encode()) + sum(len(attribute["B"]) for attribute in stored.values())
    return -(-size // KIB)


def difference(value: bytes, frame: bytes) -> bytes:
    """A value as it differs from a frame."""
    blocks = []
    for start in range(0, len(value), BLOCK_BYTES):
        engine = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _around(frame, start))
        blocks.append(engine.compress(value[start : start + BLOCK_BYTES]) + engine.flush())
    return b"".join(blocks)


def restored(short: bytes, frame: bytes) -> bytes:
    """The value of a `difference`."""
    blocks: list[bytes] = []
    while short:
        # A deflated block marks its own end.
        engine = zlib.decompressobj(-15, _around(frame, len(blocks) * BLOCK_BYTES))
        blocks.append(engine.decompress(short) + engine.flush())
        short = engine.unused_data
    return b"".join(blocks)


def _around(frame: bytes, start: int) -> bytes:
    return frame[max(0, start - SHIFT_BYTES_MAX) : start + BLOCK_BYTES + SHIFT_BYTES_MAX]
