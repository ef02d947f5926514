"""Who reads goes before who writes, within one process."""

from __future__ import annotations

import threading
import time
from types import TracebackType

SECONDS_MAX = 0.02
"""For so long after it has begun a read goes before the writer; most take a few milliseconds."""


class RightOfWay:
    """Held while somebody reads; a writer looks at it between events, and waits.

    One thread at a time has Python's interpreter. A read leaves it whenever it asks the store something, and gets it
    back from a busy writer only after the interpreter's switch interval: what takes 4 ms alone took 80 ms beside one.

    It decides about time only. A long read does not hold up the writer for long, and after a wait the writer goes on
    for as long as it has waited, whoever reads. Thread-safe; one thread at a time may `give` it.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        self._readers = 0
        self._begun_at = 0.0
        self._writing_until = 0.0

    def __enter__(self) -> None:
        with self._changing:
            self._readers += 1
            self._begun_at = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changing:
            self._readers -= 1
            if not self._readers:
                self._changing.notify_all()

    def give(self) -> None:
        """Wait until nobody reads who has the right of way."""
        if not self._readers:  # a look without the lock: it is taken between any two events
            return
        began = time.monotonic()
        if began < self._writing_until:
            return
        with self._changing:
            # Whoever begins while this waits does not make it longer.
            until = self._begun_at + SECONDS_MAX
            while self._readers and (left := until - time.monotonic()) > 0:
                self._changing.wait(left)
        ended = time.monotonic()
        self._writing_until = ended + (ended - began)
