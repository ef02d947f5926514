"""Work at which Python's garbage collector seldom looks."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 250_000
"""So many more objects than were let go bring the collector, at work that may go on for minutes too."""

_lock = threading.Lock()
_at_work = 0
_usual = _left = -1
"""The process's own threshold, and what was put in its place last."""


@contextmanager
def gc_deferred() -> Iterator[None]:
    """Keep the collector from looking through what the work makes, again and again while it grows.

    Recording a group, living a person's history or telling all that is known of one makes thousands of small objects
    and drops them a moment later, none of them in a cycle. Looking at them was measured at a third of the whole write
    path, and at three quarters of the slowest reads.

    The collector is the process's: whether it is on is left alone, and so is a threshold of 0. When the last of those
    at work at once is done, it comes after as many further objects as the process has chosen, not at once because of
    those that were just made: most of them are dropped when the answer is.
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
