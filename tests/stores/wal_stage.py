"""A writer that is killed, what it had acknowledged, and damage to its write-ahead log."""

from __future__ import annotations

import shutil
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.stores.sqlite_stage import FILE, python
from threadline.stores.sqlite.store import PAGE_BYTES

WRITER = """
import sys
from threadline.kernel.store import Batch, Key, LogEntry, Put
from threadline.stores.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1], wal_pages_max=int(sys.argv[2]), tail_entries_max=60)
item = store.get([Key("t", "calls")])[0]
number, events = item.version if item else 0, store.stats()["log_entries"]
while True:
    number += 1
    places = range(events + 1, events + 1 + number % 3)
    written = [LogEntry("aa" * 16, place, place, "t", f"{place:032x}", place, bytes(300)) for place in places]
    puts = [Put(Key("t", "calls"), b"%d" % number), Put(Key("u", f"{number % 7}"), bytes(number % 900))]
    assert store.commit([Batch(written, puts)]) == [None]
    events += number % 3
    print(number, events, flush=True)
"""


class Killed(NamedTuple):
    """A store whose writer was killed."""

    folder: Path
    calls: int
    """How many were acknowledged; the one after them may be there or not."""
    events: int
    older_logs: list[bytes]
    older_marks: list[bytes]
    """Of this writer, at earlier times."""

    @property
    def events_max(self) -> int:
        """With the call that was not acknowledged."""
        return self.events + (self.calls + 1) % 3


def killed(folder: Path, draw: Random) -> Killed:
    """Let two writers work on one store, one after the other, and kill both."""
    folder.mkdir()
    path = folder / FILE
    logs: list[bytes] = []
    for calls_min in (draw.randint(1, 60), draw.randint(1, 260)):
        marks: list[bytes] = []
        with python(WRITER, path, draw.choice([60, 150, 16_000])) as writer:
            assert writer.stdout is not None
            line = ""
            for number in range(calls_min):
                line = writer.stdout.readline()
                if number % 9 == draw.randrange(9):
                    logs.append(path.with_name(FILE + "-wal").read_bytes())
                    marks.append(path.with_name(FILE + "-mark").read_bytes())
            killer = threading.Timer(draw.uniform(0, 0.03), writer.kill)
            killer.start()
            while (further := writer.stdout.readline()).endswith("\n"):
                line = further
            killer.join()
        calls, events = map(int, line.split())
    return Killed(folder, calls, events, logs, marks)


def copied(store: Killed, folder: Path) -> Path:
    """A copy of the store with all that lies beside it."""
    shutil.copytree(store.folder, folder)
    return folder / FILE


# --- a reckoner of its own -----------------------------------------------------------------------


def reckoned(log: bytes, page_bytes: int = PAGE_BYTES) -> tuple[bytes, int]:
    """The salts of a write-ahead log and its frames up to the last whole commit, by the format's description."""
    if len(log) < 32:
        return b"", 0
    order = "<" if log[3] == 0x82 else ">"
    sums = _sums((0, 0), log[:24], order)
    if log[:3] != b"\x37\x7f\x06" or log[3] not in (0x82, 0x83) or struct.pack(">II", *sums) != log[24:32]:
        return b"", 0
    salts, commit, number, at = log[16:24], 0, 0, 32
    while at + 24 + page_bytes <= len(log):
        head, page = log[at : at + 24], log[at + 24 : at + 24 + page_bytes]
        sums = _sums(_sums(sums, head[:8], order), page, order)
        if head[8:16] != salts or struct.pack(">II", *sums) != head[16:24] or head[:4] == bytes(4):
            break
        number, at = number + 1, at + 24 + page_bytes
        if head[4:8] != bytes(4):
            commit = number
    return salts, commit


def _sums(sums: tuple[int, int], content: bytes, order: str) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


FRAME_BYTES = 24 + PAGE_BYTES
COPYING = 1
"""The state of a mark while the log is being copied into the file."""

# --- surgery -----------------------------------------------------------------------------------------


class Surgery(NamedTuple):
    """Damage, and whether it is to the write-ahead log."""

    name: str
    do: Callable[[Path, Killed, Random], None]


def _flip(path: Path, draw: Random, start: int, stop: int) -> None:
    content = bytearray(path.read_bytes())
    if content[start:stop]:
        content[start + draw.randrange(len(content[start:stop]))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def _in_a_frame(path: Path, draw: Random, start: int, stop: int) -> None:
    frames = max(1, (path.stat().st_size - 32) // FRAME_BYTES)
    at = 32 + draw.randrange(frames) * FRAME_BYTES
    _flip(path, draw, at + start, at + stop)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _zero(path: Path, draw: Random) -> None:
    content = bytearray(path.read_bytes())
    start = draw.randrange(len(content) // PAGE_BYTES + 1) * PAGE_BYTES
    stop = start + draw.randint(1, 4) * PAGE_BYTES
    content[start:stop] = bytes(len(content[start:stop]))
    path.write_bytes(content)


def _truncate(path: Path, draw: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content) + 1)])


def _swap(path: Path, store: Killed, draw: Random) -> None:
    if store.older_logs:
        path.write_bytes(draw.choice(store.older_logs))


def _older_mark(path: Path, store: Killed, draw: Random) -> None:
    """As a power cut leaves it: while the log is being copied, no older than the sync with which that began."""
    marks = store.older_marks
    if _state(path.read_bytes()) == COPYING:
        marks = [mark for mark in marks if _state(mark) == COPYING]
    if marks:
        path.write_bytes(draw.choice(marks))


def _state(mark: bytes) -> int:
    """Of the newer of the two slots: magic, serial number, id, salts, frames, state."""
    return max(struct.unpack_from("<8xQ24xIB", mark, start)[::2] for start in (0, 512))[1]


HARMLESS = [
    Surgery("nothing", lambda path, store, draw: None),
    Surgery("index of the log removed", lambda path, store, draw: _beside(path, "-shm").unlink()),
    Surgery("index of the log flipped", lambda path, store, draw: _flip(_beside(path, "-shm"), draw, 0, 136)),
    Surgery("mark removed", lambda path, store, draw: _beside(path, "-mark").unlink()),
    Surgery("mark flipped", lambda path, store, draw: _flip(_beside(path, "-mark"), draw, 0, 1_024)),
    Surgery("mark left behind", lambda path, store, draw: _older_mark(_beside(path, "-mark"), store, draw)),
]
"""What must not keep a store from being opened with all that it has."""

HARMFUL = [
    Surgery("header flipped", lambda path, store, draw: _flip(_beside(path, "-wal"), draw, 0, 32)),
    Surgery("frame header flipped", lambda path, store, draw: _in_a_frame(_beside(path, "-wal"), draw, 0, 24)),
    Surgery("frame flipped", lambda path, store, draw: _in_a_frame(_beside(path, "-wal"), draw, 24, FRAME_BYTES)),
    Surgery("truncated", lambda path, store, draw: _truncate(_beside(path, "-wal"), draw)),
    Surgery("removed", lambda path, store, draw: _beside(path, "-wal").unlink()),
    Surgery("swapped", lambda path, store, draw: _swap(_beside(path, "-wal"), store, draw)),
    Surgery("zeroed", lambda path, store, draw: _zero(_beside(path, "-wal"), draw)),
]
