"""The write-ahead log of an open store: how long it is, copied into the file beside commits, and emptied."""

from __future__ import annotations

import threading

from threadline.stores.sqlite.acknowledged import Acknowledged
from threadline.stores.sqlite.driver import Connection, DriverError, checkpoint

WAL_GROWTH_MAX = 4
"""A write-ahead log this many times longer than wished for is brought back by the writer itself."""
CHECKPOINT_BUSY_MS = 100
"""How long commits may be held up by a reader that keeps the write-ahead log from starting over."""
CHECKPOINT_RETRY_SECONDS = 1.0


class WriteAheadLog:
    """Keeps the log near ``pages_max`` pages. The writer's lock is taken before the one of checkpoints."""

    def __init__(self, writing: threading.Lock, closing: threading.Event, pages_max: int, busy_timeout_ms: int) -> None:
        self._writing = writing
        self._closing = closing
        self._pages_max = pages_max
        self._busy_timeout_ms = busy_timeout_ms
        self._restart_pages = pages_max * WAL_GROWTH_MAX
        self._copying = threading.Lock()
        self._wanted = threading.Event()
        self.pages = 0

    def begin(self, copier: Connection, acknowledged: Acknowledged) -> None:
        """Start the thread that copies. ``acknowledged`` notes what has been copied."""
        self._acknowledged = acknowledged
        self._thread = threading.Thread(
            target=self._copy_when_long, args=(copier,), name="threadline-checkpoint", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """End the thread, once the store is closing."""
        self._wanted.set()
        self._thread.join()

    def note(self, pages: int) -> None:
        """Note how long the log is after a commit."""
        self.pages = pages

    def before_commit(self, db: Connection) -> None:
        """Bring a log back that has grown far beyond its bound. The caller holds the writer's lock."""
        if self.pages > self._restart_pages:
            self._restart(db)

    def after_commit(self) -> None:
        """Have the log copied if it is long enough."""
        if self.pages > self._pages_max:
            self._wanted.set()

    def empty(self, db: Connection, busy_ms: int | None = None) -> None:
        """Copy the log into the file and leave nothing in it. The caller holds the writer's lock.

        Raises `DriverError` if a reader stays for longer than ``busy_ms``, or the store's own bound.
        """
        with self._copying:
            db.set_busy_timeout(self._busy_timeout_ms if busy_ms is None else busy_ms)
            self._acknowledged.copying()
            try:
                checkpoint(db, "restart")
                # Synced before the log goes that an earlier mark asks for.
                self._acknowledged.copied()
                self._acknowledged.sync()
                checkpoint(db, "truncate")
            finally:
                db.set_busy_timeout(self._busy_timeout_ms)
        self._begun_again()

    def _copy_when_long(self, db: Connection) -> None:
        """Copy the log into the file, out of the way of commits, whenever it is long enough."""
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closing.is_set():
                db.close()
                return
            if self.pages <= self._pages_max:
                continue
            try:
                # The first pass copies most of it, the second what was written meanwhile; the little that is then
                # left is copied while commits wait, so that the next one starts the log from its beginning again.
                with self._writing:
                    self._acknowledged.copying()
                with self._copying:
                    checkpoint(db, "passive")
                    checkpoint(db, "passive")
                with self._writing:
                    done = self._restart(db)
            except DriverError:
                done = False
            if not done:
                # Nothing is lost, it all stays in the log; a full disk or a long reader needs time to go away.
                self._closing.wait(CHECKPOINT_RETRY_SECONDS)

    def _restart(self, db: Connection) -> bool:
        """Copy the rest and let the next commit start the log over. The caller holds the writer's lock."""
        with self._copying:
            db.set_busy_timeout(CHECKPOINT_BUSY_MS)
            self._acknowledged.copying()
            try:
                # Restarted, not truncated: writing over what is there costs half of what growing the file again does.
                checkpoint(db, "restart")
            except DriverError:
                self._restart_pages = self.pages + self._pages_max
                return False
            finally:
                db.set_busy_timeout(self._busy_timeout_ms)
        self._acknowledged.copied()
        self._begun_again()
        return True

    def _begun_again(self) -> None:
        self.pages = 0
        self._restart_pages = self._pages_max * WAL_GROWTH_MAX
