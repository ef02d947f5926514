"""One interpreter for all threads of a process: readers go before the writer, and the garbage collector waits."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

# --- readers and the writer ------------------------------------------------------------------------

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
        self.reads: dict[object, float] = {}
        """Of each read that goes on: the instant until which it goes first. Whoever gives way between any two events
        looks here first."""
        self._own = threading.local()
        """``until``: the instant before which the thread need not wait again. Were it shared, a wait of one thread
        would let all the others pass the readers."""

    @contextmanager
    def reading(self, seconds: float | None = None) -> Iterator[None]:
        """A context for reads: for so long, or for `SECONDS_MAX`, the writer waits."""
        read = object()
        with self._changing:
            self.reads[read] = time.monotonic() + (SECONDS_MAX if seconds is None else seconds)
        try:
            yield
        finally:
            with self._changing:
                del self.reads[read]
                self._changing.notify_all()

    def between(self, items: Iterable[T]) -> Iterator[T]:
        """These items; readers go first before each."""
        for item in items:
            self.give()
            yield item

    def give(self) -> None:
        """Wait for the readers that have priority; those that begin meanwhile do not make it longer."""
        if not self.reads:  # without the lock
            return
        began = time.monotonic()
        if began < getattr(self._own, "until", 0.0):
            return
        with self._changing:
            first = {read: until for read, until in self.reads.items() if until > began}
            while ends := [until for read, until in first.items() if read in self.reads]:
                if (left := max(ends) - time.monotonic()) <= 0:
                    break
                self._changing.wait(left)
        ended = time.monotonic()
        self._own.until = ended + (ended - began)


# --- the collector is deferred while work makes many short-lived objects ---------------------------

_DEFERRED_OBJECTS = 250_000
"""Net allocations after which the collector runs even so: work may go on for minutes."""

_lock = threading.Lock()
_at_work = 0
_usual = _left = -1
"""The process's own threshold, and the one set here last."""


@contextmanager
def gc_deferred() -> Iterator[None]:
    """Raise the collector's threshold while the work runs.

    Recording a group, replaying a person or encoding a large view allocates thousands of small objects that are freed
    a moment later, none of them in a cycle. Scanning them took a third of the write path, and three quarters of the
    slowest reads.

    A collector that is off, or a threshold of 0, is left alone. When the last concurrent work ends, the process's own
    threshold counts from there, so that what was just allocated does not trigger a collection at once.
    """
    global _at_work, _usual, _left  # noqa: PLW0603 — the collector is as global
    with _lock:
        if _at_work == 0:
            young, *old = gc.get_threshold()
            if young != _left:
                _usual = young
            gc.set_threshold(young and max(_usual, _DEFERRED_OBJECTS), *old)
        _at_work += 1
    try:
        yield
    finally:
        with _lock:
            _at_work -= 1
            if _at_work == 0:
                young, *old = gc.get_threshold()
                _left = young and _usual + gc.get_count()[0]
                gc.set_threshold(_left, *old)


# --- the collector of a server goes in steps after requests ----------------------------------------

STEP_OBJECTS = 5_000
"""A step begins when so many more objects have been made than freed since the last."""
STEP_SECONDS = 0.05
"""And when so long ago was the last: where people leave the writer's cache as others come, as many objects are freed as
are made, and a step that waited for the difference looked through 45,000 of them, which took 60 ms."""
FULL_BLOCKS_MIN = 6_000_000
"""Everything is looked through, which takes half a second and more, at the earliest when so many blocks of memory are
in use, about 500 MB: more than the caches of a server fill."""
MEASURED_OBJECTS = 100_000
"""The blocks are counted when so many objects have outlived their step."""


class SteppedCollector:
    """In force within its ``with`` block. The collector is the process's, so there is one at a time.

    By itself Python lets new objects pile up while events are recorded, then looks through all of them at once: with
    people in the writer's cache that took 120 ms, in which nobody was answered. Here objects that outlive a step are
    left out of the later ones. Reference counts free almost everything; only a cycle that outlives a step stays, until
    twice as much memory is in use as after the last full collection.
    """

    def __init__(
        self,
        step_objects: int = STEP_OBJECTS,
        step_seconds: float = STEP_SECONDS,
        full_blocks_min: int = FULL_BLOCKS_MIN,
        measured_objects: int = MEASURED_OBJECTS,
    ) -> None:
        self._step_objects = step_objects
        self._step_seconds = step_seconds
        self._next_step = 0.0
        """By the monotonic clock."""
        self._full_blocks_min = full_blocks_min
        self._measured_objects = measured_objects
        self._live_blocks = 0
        """Blocks in use after the last full collection."""
        self._outlived = 0
        """Objects that have outlived a step since the blocks were counted; some of them have been freed."""

    def __enter__(self) -> SteppedCollector:
        self._was_enabled = gc.isenabled()
        gc.disable()
        self._collect_everything()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.unfreeze()
        if self._was_enabled:
            gc.enable()

    def step(self) -> None:
        """Look through the new objects if there are enough of them, or may be."""
        made, now = gc.get_count()[0], time.monotonic()
        if made < self._step_objects and now < self._next_step:
            return
        self._next_step = now + self._step_seconds
        gc.collect(0)
        gc.freeze()
        self._outlived += made
        if self._outlived >= self._measured_objects:
            self._outlived = 0
            if sys.getallocatedblocks() > max(self._full_blocks_min, 2 * self._live_blocks):
                self._collect_everything()

    def _collect_everything(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._live_blocks = sys.getallocatedblocks()
