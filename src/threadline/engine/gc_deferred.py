"""Defers Python's garbage collector during work that makes many short-lived objects."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 250_000
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
            gc.set_threshold(young and max(_usual, _OBJECTS), *old)
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
