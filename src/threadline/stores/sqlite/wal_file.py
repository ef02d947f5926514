"""The write-ahead log as it lies on the disk: its salts, and the commits in it, whole or not.

The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log. SQLite stops reading at the first frame whose
checksum is wrong, and says nothing of those behind it.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_MAGIC = (0x377F0682, 0x377F0683)
_FRAME = struct.Struct(">II8s")
_SALT = struct.Struct(">I")
SUCCESSORS_MAX = 1_000
"""How many times the log may have started over since a mark that a power cut has left behind."""


class LogFile(NamedTuple):
    """What is seen of a write-ahead log without its checksums."""

    size: int
    salts: bytes
    """Of the header; empty if that is damaged."""
    commits: dict[bytes, list[int]]
    """Salts -> the numbers, from 1, of the frames with these salts that end a commit, whole or not."""

    def commits_behind(self, frame: int, salts: bytes) -> int:
        """How many commits under these salts end behind this frame."""
        return sum(number > frame for number in self.commits.get(salts, ()))


def read_log(path: Path, page_bytes: int) -> LogFile:
    """The log at this path; an empty one if there is none. Raises `OSError`."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return LogFile(0, b"", {})
    with file:
        number, commits = file.fileno(), dict[bytes, list[int]]()
        size = os.fstat(number).st_size
        header = os.pread(number, HEADER_BYTES, 0)
        step = page_bytes + FRAME_HEADER_BYTES
        for frame in range((size - HEADER_BYTES) // step):
            _, pages, salts = _FRAME.unpack(os.pread(number, _FRAME.size, HEADER_BYTES + frame * step))
            if pages and any(salts):
                commits.setdefault(salts, []).append(frame + 1)
    return LogFile(size, header[16:24] if _header_is_whole(header) else b"", commits)


def _header_is_whole(header: bytes) -> bool:
    if len(header) < HEADER_BYTES:
        return False
    [magic] = _SALT.unpack_from(header)
    if magic not in _MAGIC:
        return False
    words = struct.unpack(("<" if magic == _MAGIC[0] else ">") + "6I", header[:24])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = first + even + second & 0xFFFFFFFF
        second = second + odd + first & 0xFFFFFFFF
    return struct.pack(">II", first, second) == header[24:32]


def is_successor(salts: bytes, earlier: bytes) -> bool:
    """Whether a log with these salts came after one with the others: SQLite counts the first one up."""
    [new], [old] = _SALT.unpack_from(salts), _SALT.unpack_from(earlier)
    return bool(1 <= (new - old) % (1 << 32) <= SUCCESSORS_MAX)
