"""What stores keep, as Zstandard frames with a trained dictionary: compression at rest, a third of the bytes.

Events and items are short and alike, so that a general compressor gains little with each of them alone; a dictionary
brings what they have in common. It ships with the package, made of a made-up world and of nobody's data
(`release/dictionaries.py`): whoever is erased is in no dictionary.

    >>> from threadline.stores.compression import bodies
    >>> body = b'["identify",[["user_id","ada"],["email","ada@example.com"]],1,{"library":{"name":"analytics.js"}}]'
    >>> [row] = bodies.compressed([body])
    >>> len(row) < len(body), bodies.restored([row, b"of a former version"]) == [body, b"of a former version"]
    (True, True)

The row itself says what it is: a frame begins as RFC 8878 has it and names its dictionary by number, and anything else
stands as it was given. So rows of stores from before are read as ever, and the two may lie side by side.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import zstandard

from threadline.kernel.errors import StoreDamaged, Unavailable
from threadline.kernel.limits import ITEM_BYTES_MAX
from threadline.kernel.store import Item, Key

ZSTD_START = zstandard.FRAME_HEADER
BYTES_MIN = 64
"""Anything shorter is stored as it is: the header of a frame and its checksum take eleven bytes."""
CONTENT_BYTES_MAX = 2 * ITEM_BYTES_MAX
"""A frame that says that it holds more was written by no store, and no memory is taken for it."""
BODIES, VALUES = 1, 2
"""The dictionaries in force, of the log's bodies and of the values of items."""
SHA256 = {
    BODIES: "bd25432a45448321ab75e6cff729bcc75f89842de8eaacc87aa8e9a8c67bc873",
    VALUES: "f66662776f1644ecb9ae7e8847e836593422e9a84e78f0f7e149a323adade52d",
}
"""Of every dictionary that rows may name. What has been released is never changed: no such row could be read again."""
LEVEL = 1
"""Level 3 makes values 7 % smaller for twice the time."""
TOGETHER_MIN = 32
"""So many rows go through the library in one call, which takes 10 to 30 µs to begin and gives up the interpreter's lock
once. Fewer are quicker one by one, each too quickly done for another thread to take the lock."""


class RowDamaged(ValueError):
    """A compressed row cannot be read: it is not as it was written, or its dictionary came with a later version."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(f"it is compressed, and cannot be restored: {why}")
        self.index = index
        """Which of the rows."""


class Compression:
    """Frames of one kind of content. Safe for use from many threads.

    All rows of a commit or of a read are handed over together.
    """

    def __init__(self, number: int, level: int = LEVEL) -> None:
        self._number, self._level = number, level
        # One is used by one thread at a time, and is worth keeping: to make one costs more than to use it.
        self._compressors: deque[zstandard.ZstdCompressor] = deque()
        self._decompressors: deque[zstandard.ZstdDecompressor] = deque()

    @cached_property
    def _dictionary(self) -> zstandard.ZstdCompressionDict:
        path = dictionary_path(self._number)
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != SHA256[self._number]:
            raise Unavailable(
                f"{path} is missing or not as it was released; without it no store can be read or written",
                hint="Install Threadline again.",
            )
        dictionary = zstandard.ZstdCompressionDict(content)
        dictionary.precompute_compress(level=self._level)
        return dictionary

    def compressed(self, values: Sequence[bytes]) -> list[bytes]:
        """These values as they are to be stored, in their order."""
        rows = list(values)
        # What looks like a frame becomes one, so that it is taken for nothing else.
        long = [index for index, row in enumerate(rows) if len(row) >= BYTES_MIN or row[:4] == ZSTD_START]
        if not long:
            return rows
        try:
            compressor = self._compressors.pop()
        except IndexError:
            # A damaged frame is noticed by its checksum, whatever store it lies in.
            compressor = zstandard.ZstdCompressor(level=self._level, dict_data=self._dictionary, write_checksum=True)
        if len(long) < TOGETHER_MIN:
            frames = [compressor.compress(rows[index]) for index in long]
        else:
            frames = _apart(compressor.multi_compress_to_buffer([rows[index] for index in long]))
        self._compressors.append(compressor)
        for index, frame in zip(long, frames, strict=True):
            if len(frame) < len(rows[index]) or rows[index][:4] == ZSTD_START:
                rows[index] = frame
        return rows

    def restored(self, rows: Sequence[bytes]) -> list[bytes]:
        """The values of these rows, in their order. Raises `RowDamaged` for the first that cannot be read."""
        values = list(rows)
        framed = [index for index, row in enumerate(values) if row[:4] == ZSTD_START]
        if not framed:
            return values
        frames: list[bytes | bytearray | memoryview] = [values[index] for index in framed]
        try:
            contents = self._contents(frames)
        except (zstandard.ZstdError, ValueError):
            contents = [self._content(index, values[index]) for index in framed]
        for index, content in zip(framed, contents, strict=True):
            values[index] = content
        return values

    def readable(self, rows: Sequence[bytes]) -> list[bytes]:
        """The values of these rows; of one that cannot be read, the row as it is stored."""
        try:
            return self.restored(rows)
        except RowDamaged:
            return [self.readable([row])[0] for row in rows] if len(rows) > 1 else list(rows)

    def _content(self, index: int, frame: bytes) -> bytes:
        try:
            return self._contents([frame])[0]
        except (zstandard.ZstdError, ValueError) as error:
            raise RowDamaged(index, str(error)) from None

    def _contents(self, frames: list[bytes | bytearray | memoryview]) -> list[bytes]:
        if max(map(zstandard.frame_content_size, frames)) > CONTENT_BYTES_MAX:
            raise ValueError(f"it says that it holds more than {CONTENT_BYTES_MAX:,} bytes")
        try:
            decompressor = self._decompressors.pop()
        except IndexError:
            decompressor = zstandard.ZstdDecompressor(dict_data=self._dictionary)
        if len(frames) < TOGETHER_MIN:
            contents = [decompressor.decompress(frame) for frame in frames]
        else:
            contents = _apart(decompressor.multi_decompress_to_buffer(frames))
        self._decompressors.append(decompressor)
        return contents


def _apart(joined: zstandard.BufferWithSegmentsCollection) -> list[bytes]:
    return [joined[index].tobytes() for index in range(len(joined))]


def items(rows: Iterable[tuple[Key, int, bytes]]) -> list[Item]:
    """The items of rows (key, version, stored value). Raises `StoreDamaged` for one that cannot be read."""
    stored = list(rows)
    try:
        contents = values.restored([row[2] for row in stored])
    except RowDamaged as error:
        raise item_damaged(*stored[error.index][:2], f": {error}") from None
    return [Item(key, version, value) for (key, version, _), value in zip(stored, contents, strict=True)]


def item_damaged(key: Key, version: int, why: str = "") -> StoreDamaged:
    """The error for an item that is not as it was written."""
    hint = "`threadline verify` lists all that is damaged; what is derived from the log is made again by a refold."
    return StoreDamaged(
        f"the item {'/'.join(map(str, key))!r} (version {version}) is not as it was written{why}", hint=hint
    )


def dictionary_path(number: int) -> Path:
    """The file of the dictionary with this number."""
    return Path(__file__).parent / "dictionaries" / f"{number}.zstd-dictionary"


bodies = Compression(BODIES)
values = Compression(VALUES)
