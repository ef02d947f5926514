"""Work during which Python's garbage collector stays away."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector from looking through what the work makes, again and again while it grows.

    Recording a group, living a person's history or telling all that is known of one makes thousands of small objects
    and drops them a moment later, none of them in a cycle. Looking at them was measured at a third of the whole write
    path, and at three quarters of the slowest reads.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
