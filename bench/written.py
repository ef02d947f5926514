"""What a store in SQLite has the disk write: frames of its write-ahead log, and pages copied from there into the file.

The counters of /proc count whole folios on newer kernels, 53,687 bytes for a write of 2 KB, so frames and pages are
counted where they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadline.stores.sqlite.wal import WriteAheadLog

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
"""Of the log, and of each frame in it (https://sqlite.org/fileformat2.html#walformat)."""


class Written:
    """Counts from `counting` on."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(f"{path.name}-wal")
        self._pages = 0
        self._page_bytes = 0
        self._seen: set[bytes] = set()
        """Pages with a frame in the log: what is copied of each is the newest."""
        self.frames = 0
        self.copied = 0

    @property
    def bytes(self) -> int:
        """What was written."""
        return self.frames * (self._page_bytes + FRAME_HEADER_BYTES) + self.copied * self._page_bytes

    def note(self, pages: int) -> None:
        """Note how long the log is after a commit; if it is shorter than before, it was copied and begun again."""
        if pages < self._pages:
            self.copied += len(self._seen)
            self._seen.clear()
            self._pages = 0
        with self._log.open("rb") as log:
            self._page_bytes = int.from_bytes(log.read(HEADER_BYTES)[8:12], "big")
            for number in range(self._pages, pages):
                log.seek(HEADER_BYTES + number * (FRAME_HEADER_BYTES + self._page_bytes))
                self._seen.add(log.read(4))
        self.frames += pages - self._pages
        self._pages = pages


@contextmanager
def counting(path: Path) -> Iterator[Written]:
    """Count what a store writes that is opened in this context. One store of this process at a time."""
    written = Written(path)
    note = WriteAheadLog.note

    def noted(log: WriteAheadLog, pages: int) -> None:
        written.note(pages)
        note(log, pages)

    WriteAheadLog.note = noted  # type: ignore[method-assign]
    try:
        yield written
    finally:
        WriteAheadLog.note = note  # type: ignore[method-assign]
