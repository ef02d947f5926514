"""Work during which Python's garbage collector stays away."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_at_work = 0
_was_enabled = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector from looking through what the work makes, again and again while it grows.

    Recording a group, living a person's history or telling all that is known of one makes thousands of small objects
    and drops them a moment later, none of them in a cycle. Looking at them was measured at a third of the whole write
    path, and at three quarters of the slowest reads.

    The collector is the process's, so it is the last of those at work at once who puts it back as the first found it.
    """
    global _at_work, _was_enabled  # noqa: PLW0603 — the collector is as global
    with _lock:
        if _at_work == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _at_work += 1
    try:
        yield
    finally:
        with _lock:
            _at_work -= 1
            if _at_work == 0 and _was_enabled:
                gc.enable()
