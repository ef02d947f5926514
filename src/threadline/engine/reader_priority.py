"""Readers go before the writer, within one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

SECONDS_MAX = 0.02
"""Seconds for which a read goes before the writer; most take a few milliseconds."""
PAGE_SECONDS_MAX = 0.25
"""As long for a page that somebody waits for: it makes a dozen reads and is asked for seldom."""


class ReaderPriority:
    """Entered by readers; a writer waits for them between events.

    One thread at a time has Python's interpreter. A read releases it at each query of the store, and gets it back from
    a busy writer only after the interpreter's switch interval: a read of 4 ms took 80 ms beside one.

    A long read delays the writer by a bounded time, and after a wait the writer runs at least as long as it has waited.
    So does each other thread that gives way. Thread-safe.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        self._until: dict[object, float] = {}
        """Of each read that goes on: the instant until which it goes first."""
        self._own = threading.local()
        """``until``: the instant before which the thread need not wait again. Were it shared, a wait of one thread
        would let all the others pass the readers."""

    @contextmanager
    def reading(self, seconds: float | None = None) -> Iterator[None]:
        """A context for reads: for so long, or for `SECONDS_MAX`, the writer waits."""
        read = object()
        with self._changing:
            self._until[read] = time.monotonic() + (SECONDS_MAX if seconds is None else seconds)
        try:
            yield
        finally:
            with self._changing:
                del self._until[read]
                self._changing.notify_all()

    def between(self, items: Iterable[T]) -> Iterator[T]:
        """These items; readers go first before each."""
        for item in items:
            self.give()
            yield item

    def give(self) -> None:
        """Wait for the readers that have priority; those that begin meanwhile do not make it longer."""
        if not self._until:  # without the lock: this runs between any two events
            return
        began = time.monotonic()
        if began < getattr(self._own, "until", 0.0):
            return
        with self._changing:
            first = {read: until for read, until in self._until.items() if until > began}
            while ends := [until for read, until in first.items() if read in self._until]:
                if (left := max(ends) - time.monotonic()) <= 0:
                    break
                self._changing.wait(left)
        ended = time.monotonic()
        self._own.until = ended + (ended - began)
