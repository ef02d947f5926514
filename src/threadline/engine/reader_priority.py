"""Readers go before the writer, within one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS_MAX = 0.02
"""Seconds for which a read goes before the writer; most take a few milliseconds."""


class ReaderPriority:
    """Entered by readers; a writer waits for them between events.

    One thread at a time has Python's interpreter. A read releases it at each query of the store, and gets it back from
    a busy writer only after the interpreter's switch interval: a read of 4 ms took 80 ms beside one.

    A long read delays the writer by a bounded time, and after a wait the writer runs at least as long as it has waited.
    So does each other thread that gives way. Thread-safe.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        self._begun_at: dict[object, float] = {}
        """Of each read that goes on."""
        self._own = threading.local()
        """``until``: the instant before which the thread need not wait again. Were it shared, a wait of one thread
        would let all the others pass the readers."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context for reads: the writer waits."""
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
        """Wait for the readers that have priority; those that begin meanwhile do not make it longer."""
        if not self._begun_at:  # without the lock: this runs between any two events
            return
        began = time.monotonic()
        if began < getattr(self._own, "until", 0.0):
            return
        with self._changing:
            first = {read: until for read, at in self._begun_at.items() if (until := at + SECONDS_MAX) > began}
            while ends := [until for read, until in first.items() if read in self._begun_at]:
                if (left := max(ends) - time.monotonic()) <= 0:
                    break
                self._changing.wait(left)
        ended = time.monotonic()
        self._own.until = ended + (ended - began)
