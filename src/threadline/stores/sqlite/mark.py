"""What was acknowledged last, in a small file beside the store: without it a shortened write-ahead log looks whole."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from threadline.stores.sqlite.file import open_like

MAGIC = b"ThrlMrk1"
SLOT_BYTES = 512
"""A sector, which a disk writes whole. There are two, written in turn: at most the newer one can be torn."""
_HEAD = struct.Struct("<8sQ16s8sIB5qI")
_SUM = struct.Struct("<I")
NO_SALTS = bytes(8)


class LogState(IntEnum):
    """What the store needs of its write-ahead log."""

    NEEDED = 0
    """The log has commits that the file lacks."""
    COPYING = 1
    """As `NEEDED`, and the file may have a part of them: without the log it is of no instant."""
    COPIED = 2
    """The file has everything."""
    CLOSED = 3
    """As `COPIED`, and there is no log."""


class Mark(NamedTuple):
    """A lower bound of what was acknowledged. May lag behind the store after a power cut, and is never ahead of it."""

    store: bytes
    """The id in the table ``store_id``, 16 bytes."""
    salts: bytes = NO_SALTS
    """Of the write-ahead log, which has others whenever it starts over; zeros: it is not known yet."""
    frames: int = 0
    """Of the write-ahead log, up to the last commit."""
    state: LogState = LogState.COPIED
    position: int = 0
    """The last position in the event log."""
    copied: int = 0
    """The last position in the event log when the file had everything."""
    copied_at: int = 0
    """When that was, in microseconds."""
    at: int = 0
    """When the last commit was acknowledged, in microseconds."""
    version: int = 0
    """Of an item of the last commit that wrote any; 0: there was none."""
    crc: int = 0
    """Its checksum. Not its key, which may name somebody who is erased later."""


def _packed(mark: Mark, serial: int) -> bytes:
    head = _HEAD.pack(MAGIC, serial, *mark)
    content = head.ljust(SLOT_BYTES - _SUM.size, b"\0")
    return content + _SUM.pack(crc32(content))


def _unpacked(slot: bytes) -> tuple[int, Mark] | None:
    if len(slot) != SLOT_BYTES or crc32(slot[: -_SUM.size]) != _SUM.unpack(slot[-_SUM.size :])[0]:
        return None
    magic, serial, *fields = _HEAD.unpack_from(slot)
    if magic != MAGIC:
        return None
    mark = Mark(*fields)
    return serial, mark._replace(state=LogState(mark.state))


def mark_path(store: Path) -> Path:
    """Where the mark of a store lies."""
    return store.with_name(store.name + "-mark")


def read_mark(store: Path) -> Mark | None:
    """The mark beside a store; None if there is none. Raises `ValueError` if it is damaged, or `OSError`."""
    try:
        content = mark_path(store).read_bytes()
    except FileNotFoundError:
        return None
    slots = [slot for start in (0, SLOT_BYTES) if (slot := _unpacked(content[start : start + SLOT_BYTES]))]
    if not slots:
        raise ValueError(f"{mark_path(store)} is damaged")
    return max(slots)[1]


class MarkFile:
    """The mark of a store that is open for writing. The caller's lock keeps threads apart.

    It is written without a sync after each commit, before that is acknowledged: ``kill -9`` leaves it exact. A mark
    that cannot be written only lags.
    """

    def __init__(self, store: Path, mark: Mark) -> None:
        """Begin with a mark, synced: a later power cut then finds none that was made for an earlier log."""
        self._descriptor = open_like(store, mark_path(store))
        self._serial = 0
        self._synced = 0
        self.mark = mark
        # Both slots, so that nothing of an earlier mark is left; in full, so that later writes need no room.
        try:
            os.pwrite(self._descriptor, _packed(mark, 0) * 2, 0)
            os.fsync(self._descriptor)
        except OSError:
            os.close(self._descriptor)
            raise

    def write(self, mark: Mark) -> None:
        """Put a mark down; `sync` makes it survive a power cut."""
        self.mark = mark
        self._serial += 1
        # A disk that copies on write can be full: then the older mark stays, which says less and nothing wrong.
        with suppress(OSError):
            os.pwrite(self._descriptor, _packed(mark, self._serial), (self._serial & 1) * SLOT_BYTES)

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        serial = self._serial
        if self._synced != serial:
            with suppress(OSError):
                os.fdatasync(self._descriptor)
                self._synced = serial

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        os.close(self._descriptor)
