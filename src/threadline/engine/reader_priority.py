"""Readers go before the writer, within one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS_MAX = 0.02
"""For so long after it has begun a read goes before the writer; most take a few milliseconds."""


class ReaderPriority:
    """Held by whoever reads; a writer looks at it between events, and waits.

    One thread at a time has Python's interpreter. A read leaves it whenever it asks the store something, and gets it
    back from a busy writer only after the interpreter's switch interval: what takes 4 ms alone took 80 ms beside one.

    It decides about time only. A long read does not hold up the writer for long, and after a wait the writer goes on
    for as long as it has waited, whoever reads; so does whoever else gives way. Thread-safe.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        self._begun_at: dict[object, float] = {}
        """Of each read that goes on."""
        self._writing_until = 0.0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Go before the writer meanwhile."""
        read = object()
        with self._changing:
            self._begun_at[read] = time.monotonic()
        try:
            yield
        finally:
            with self._changing:
                del self._begun_at[read]
                self._changing.notify_all()

    def give(self) -> None:
        """Wait for those who read and have the right of way; whoever begins meanwhile does not make it longer."""
        if not self._begun_at:  # a look without the lock: it is taken between any two events
            return
        began = time.monotonic()
        if began < self._writing_until:
            return
        with self._changing:
            first = {read: until for read, at in self._begun_at.items() if (until := at + SECONDS_MAX) > began}
            while ends := [until for read, until in first.items() if read in self._begun_at]:
                if (left := max(ends) - time.monotonic()) <= 0:
                    break
                self._changing.wait(left)
        ended = time.monotonic()
        self._writing_until = ended + (ended - began)
