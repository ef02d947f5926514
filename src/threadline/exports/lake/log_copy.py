"""A copy of the log in columns, which questions read instead of the log: a lake of its own that follows one store.

It has nothing that the log has not: what was erased is taken out when it is brought up to date, and where it belongs to
another log, because the store was moved or put back from a backup, it is begun anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports.lake.compaction import compact
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.reading import check_log
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import Conflict, Unavailable
from threadline.kernel.store import Store

TAIL_EVENTS = 10_000
"""Entries of the log that are read quickly: up to so many there is no copy, and from so many on it is brought up to
date."""
FILES_MAX = 200
"""Files from which on small ones are put together after it has grown."""


class LogCopy:
    """The copy of a store's log in a folder, which processes may share. Thread-safe."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.lake = Lake(FolderStorage(folder))
        self._engine = engine
        self._folder = folder
        self._growing = threading.Lock()
        """It is brought up to date by one thread at a time. Questions go on meanwhile: putting its files together
        takes half a minute at a million events."""

    @property
    def is_begun(self) -> bool:
        """Whether its folder is there."""
        return self._folder.exists()

    @property
    def is_needed(self) -> bool:
        """Whether it is there, or the log is too long to be read for each question."""
        return self.is_begun or waits(self._engine.store, 0, "", TAIL_EVENTS)

    def is_ours(self) -> bool:
        """Whether it is a copy of this log, of which something is there."""
        manifest = self.lake.manifest()
        with suppress(Conflict):
            check_log(self._engine.store, self.lake, manifest)
            return manifest.position > 0
        return False

    def is_current(self, lacking: int) -> bool:
        """Whether it is a copy of this log without anybody who was erased, and lacks fewer entries."""
        store, manifest = self._engine.store, self.lake.manifest()
        with suppress(Conflict):
            check_log(store, self.lake, manifest)
            if erased_since(store, manifest.erased)[1] == manifest.erased:
                return not waits(store, manifest.position, manifest.cursor, lacking)
        return False

    def grow(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Bring it up to date but for what is read quickly, beside questions. See `sync` for ``on_progress``."""
        with self._growing:
            if self.is_current(TAIL_EVENTS):
                return
            try:
                check_log(self._engine.store, self.lake, self.lake.manifest())
            except Conflict:  # the store was put back from a backup, or moved
                self.lake.storage.delete([file.name for file in self.lake.storage.list()])
            try:
                sync(self._engine, self.lake, on_progress=on_progress)
                if len(self.lake.manifest().files) > FILES_MAX:
                    compact(self._engine, self.lake)
            except Conflict as error:
                # Another process does the same. What it has not written yet is read from the log.
                if not self.lake.manifest().position:
                    raise Unavailable(f"the columns of analytics are not there yet: {error}") from None


def waits(store: Store, position: int, cursor: str, events: int) -> bool:
    """Whether at least so many entries were recorded behind a position."""
    entries = store.stats().get("log_entries")
    if entries is not None:
        return entries - position >= events
    count = 0
    while count < events and (page := store.feed(cursor)):
        count += len(page)
        cursor = page[-1].cursor
    return count >= events
