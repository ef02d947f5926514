"""Python's garbage collector in a server: short steps after requests, so that no request waits for a long one."""

from __future__ import annotations

import gc
import sys
import time
from types import TracebackType

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
