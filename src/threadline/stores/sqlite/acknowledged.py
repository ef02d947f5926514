"""What an open store has acknowledged: its mark after each commit, and whether its files are still those it opened."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from threadline.kernel.errors import StoreMissing
from threadline.stores.sqlite.file import lock_path
from threadline.stores.sqlite.mark import NO_SALTS, LogState, Mark, MarkFile

LOOK_SECONDS = 0.4
"""How often the files are looked for, so that a reader hears of it within a second."""
FRESH_SECONDS = 0.02
"""How long a look by a commit counts for those after it. What they write into a file that has gone is rescued."""
SYNC_LOOKS = 3
"""The mark is synced at one look of so many, when it has changed."""
_WAL_SALTS = (8, 16)
"""Bytes, and where they begin."""

log = logging.getLogger("threadline.store")


class Acknowledged:
    """The mark of a store that is open for writing. All but `sync` under the store's writing lock."""

    def __init__(self, path: Path, store: bytes, position: int, frames: int, *, is_copied: bool) -> None:
        path, now = path.resolve(), _now()
        self._wal = os.open(path.with_name(path.name + "-wal"), os.O_RDONLY | os.O_CLOEXEC)
        salts = os.pread(self._wal, *_WAL_SALTS) if frames else NO_SALTS
        state = LogState.COPIED if is_copied else LogState.COPYING
        copied = position if is_copied else 0
        try:
            self._marks = MarkFile(path, Mark(store, salts, frames, state, position, copied, now, now))
        except BaseException:
            os.close(self._wal)
            raise

    def committed(self, frames: int, position: int, written: tuple[int, int] | None) -> None:
        """Note a durable commit before it is answered. ``written``: version and checksum of one of its items."""
        last = self._marks.mark
        # The log starts over only after it was copied. Where another program did that, these salts are the ones before.
        is_new = last.state != LogState.NEEDED or frames <= last.frames
        salts = os.pread(self._wal, *_WAL_SALTS) if is_new else last.salts
        state = LogState.COPYING if last.state == LogState.COPYING else LogState.NEEDED
        version, crc = written or (last.version, last.crc)
        self._marks.write(
            Mark(last.store, salts, frames, state, position, last.copied, last.copied_at, _now(), version, crc)
        )

    def copying(self) -> None:
        """Note that the write-ahead log is about to be copied into the file.

        Synced at once: a power cut in the middle of copying would leave an earlier mark beside a file that is of no
        instant, and that file looks like an older one.
        """
        if self._marks.mark.state == LogState.NEEDED:
            self._marks.write(self._marks.mark._replace(state=LogState.COPYING))
            self._marks.sync()

    def copied(self) -> None:
        """Note that the file has everything."""
        last = self._marks.mark
        self._marks.write(last._replace(state=LogState.COPIED, copied=last.position, copied_at=_now()))

    def closed(self) -> None:
        """Note that the file has everything and that the write-ahead log is about to go."""
        last = self._marks.mark
        self._marks.write(last._replace(state=LogState.CLOSED, salts=NO_SALTS, frames=0))

    def sync(self) -> None:
        """Make the mark survive a power cut."""
        self._marks.sync()

    def close(self) -> None:
        """Sync the mark and close the files."""
        self._marks.close()
        os.close(self._wal)


def _now() -> int:
    return time.time_ns() // 1_000


class Presence:
    """Whether the files of an open store are where they were, and are the same."""

    def __init__(self, path: Path) -> None:
        resolved = path.resolve()
        self._path = path
        self._log_path = resolved.with_name(resolved.name + "-wal")
        self._others = [resolved.with_name(resolved.name + "-shm"), lock_path(resolved)]
        # A descriptor that has the inode only: closing a real one would give up SQLite's locks on the file.
        self._inode = os.open(resolved, os.O_PATH | os.O_CLOEXEC)
        self._opened = {file: _identity(file) for file in (self._path, self._log_path, *self._others)}
        self._looked_at = float("-inf")
        self.missing: Path | None = None
        """The first file that is not there any more."""

    @property
    def is_removed(self) -> bool:
        """Whether the store itself has no name any more, and goes when the process ends."""
        return os.fstat(self._inode).st_nlink == 0

    def close(self) -> None:
        """Let the file go."""
        os.close(self._inode)

    def check(self) -> None:
        """Raise `StoreMissing` if a file was missing at the last look."""
        if self.missing is not None:
            raise StoreMissing(
                f"{self.missing} was removed, renamed or replaced while it was in use; nothing is written any more"
            )

    def look(self) -> None:
        """Look for the store and its log, unless that was done a moment ago, then `check`."""
        now = time.monotonic()
        if now - self._looked_at > FRESH_SECONDS:
            self._looked_at = now
            for file in (self._path, self._log_path):
                if _identity(file) != self._opened[file]:
                    self.missing = file
        self.check()

    def look_at_all(self) -> None:
        """Look for everything; a file that came back under its name is the store again."""
        gone = [file for file, opened in self._opened.items() if _identity(file) != opened]
        self.missing = gone[0] if gone else None


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Watch:
    """The thread that looks for the files of a store, and syncs its mark."""

    def __init__(self, presence: Presence, acknowledged: Acknowledged, rescue: Callable[[], None]) -> None:
        self._presence = presence
        self._acknowledged = acknowledged
        self._rescue = rescue
        self._is_missed = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="threadline-store-watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        looks = 0
        while not self._stopping.wait(LOOK_SECONDS):
            looks += 1
            self._presence.look_at_all()
            if self._presence.missing is not None:
                self.miss(self._presence.missing)
            elif self._is_missed:
                self._is_missed = False
                log.warning("the files are there again")
            if looks % SYNC_LOOKS == 0:
                self._acknowledged.sync()

    def miss(self, file: Path) -> None:
        """Report that a file is not there any more and rescue what it had, once."""
        if self._is_missed:
            return
        self._is_missed = True
        log.critical("%s was removed, renamed or replaced; nothing is read or written any more", file)
        try:
            self._rescue()
        except Exception:
            log.exception("what was acknowledged could not be rescued; it may be lost when this process ends")

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join()
