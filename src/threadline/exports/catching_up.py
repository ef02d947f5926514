"""Lets what derives from the log, as the search index and the columns of analytics, keep up while it is used."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from threadline.kernel.errors import Unavailable
from threadline.kernel.limits import SEARCH_CATCH_UP_EVENTS
from threadline.kernel.search import IndexProgress

FEW_EVENTS = 100
"""Taken in at a look, unless more are missing."""
IDLE_SECONDS = 1.0
"""Between two looks where nothing is recorded."""

log = logging.getLogger("threadline.exports")


@runtime_checkable
class KeepsUp(Protocol):
    """What this process keeps beside the store: an index, or columns."""

    @property
    def is_begun(self) -> bool:
        """Whether anybody has ever asked: until then nothing is kept."""
        ...

    def catch_up(self, limit: int) -> IndexProgress:
        """See `SearchIndex.catch_up`."""
        ...


class CatchUpWorker:
    """Lets what somebody uses keep up, in a thread of its own."""

    def __init__(
        self,
        name: str,
        index: KeepsUp,
        pause_seconds: float | None = None,
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        """What is kept, for the log."""
        self._index = index
        self._pause = pause_seconds
        """Between two looks at the log; None: it looks once whenever it is started."""
        self._give_way = give_way
        """Called before each look, while nobody has to wait for the index."""
        self._position = 0
        self._thread: threading.Thread | None = None

    def start(self, stopping: threading.Event) -> None:
        """Catch up if that is not going on already."""
        if self._index.is_begun and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(
                target=self._run, args=(stopping,), name=f"threadline-{self._name}", daemon=True
            )
            self._thread.start()

    def _run(self, stopping: threading.Event) -> None:
        try:
            position, is_complete = -1, True
            while not stopping.is_set():
                self._give_way()
                # A question waits for what is being taken in: little at a time, unless much is missing anyway.
                before, progress = position, self._index.catch_up(FEW_EVENTS if is_complete else SEARCH_CATCH_UP_EVENTS)
                position, is_complete = progress
                if is_complete:
                    if self._pause is None:
                        break
                    stopping.wait(self._pause if position != before else max(self._pause, IDLE_SECONDS))
        except Unavailable as error:
            log.warning("%s waits: %s", self._name, error)
        except Exception:
            log.exception("%s cannot catch up", self._name)

    def step(self) -> int:
        """Catch up by a page or two, for who calls again while there is more; how many entries that were."""
        if not self._index.is_begun:
            return 0
        before, self._position = self._position, self._index.catch_up(SEARCH_CATCH_UP_EVENTS).position
        return max(self._position - before, 0)

    def finish(self) -> None:
        """Wait for the page that is being taken in."""
        if self._thread is not None:
            self._thread.join()
