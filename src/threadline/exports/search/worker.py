"""Lets a search index that somebody uses keep up with the log, so that the next search has little to take in."""

from __future__ import annotations

import logging
import threading
from typing import Protocol, runtime_checkable

from threadline.kernel.errors import Unavailable
from threadline.kernel.limits import SEARCH_CATCH_UP_EVENTS
from threadline.kernel.search import IndexProgress

log = logging.getLogger("threadline.search")


@runtime_checkable
class KeepsUp(Protocol):
    """An index that this process keeps."""

    @property
    def is_begun(self) -> bool:
        """Whether anybody has ever searched: until then nothing keeps an index."""
        ...

    def catch_up(self, limit: int) -> IndexProgress:
        """See `SearchIndex.catch_up`."""
        ...


class SearchWorker:
    """Lets an index that somebody uses keep up, in a thread of its own."""

    def __init__(self, index: KeepsUp) -> None:
        self._index = index
        self._position = 0
        self._thread: threading.Thread | None = None

    def start(self, stopping: threading.Event) -> None:
        """Catch up if that is not going on already."""
        if self._index.is_begun and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, args=(stopping,), name="threadline-search", daemon=True)
            self._thread.start()

    def _run(self, stopping: threading.Event) -> None:
        try:
            while not stopping.is_set() and not self._index.catch_up(SEARCH_CATCH_UP_EVENTS).is_complete:
                pass
        except Unavailable as error:
            log.warning("the search index waits: %s", error)
        except Exception:
            log.exception("the search index cannot catch up")

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
