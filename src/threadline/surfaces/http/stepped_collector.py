"""Python's garbage collector in a server: short steps after requests, so that no request waits for a long one."""

from __future__ import annotations

import gc
from types import TracebackType

STEP_OBJECTS = 5_000
"""A step begins when so many more objects have been made than freed since the last; it takes 5 ms or less."""
FULL_OBJECTS_MIN = 1_000_000
"""Everything is looked through at the earliest when so many objects have outlived their step."""


class SteppedCollector:
    """In force within its ``with`` block. The collector is the process's, so there is one at a time.

    By itself Python lets new objects pile up while events are recorded, then looks through all of them at once: with
    people in the writer's cache that took 120 ms, in which nobody was answered. Here objects that outlive a step are
    left out of the later ones. Reference counts free almost everything; only a cycle that outlives a step stays, until
    twice as many objects live as after the last full collection.
    """

    def __init__(self, step_objects: int = STEP_OBJECTS, full_objects_min: int = FULL_OBJECTS_MIN) -> None:
        self._step_objects = step_objects
        self._full_objects_min = full_objects_min
        self._live = 0
        """Objects after the last full collection."""
        self._outlived = 0
        """Objects that have outlived a step since then; some of them have been freed."""

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
        """Look through the new objects if there are enough of them."""
        made = gc.get_count()[0]
        if made < self._step_objects:
            return
        gc.collect(0)
        gc.freeze()
        self._outlived += made
        if self._outlived > max(self._full_objects_min, self._live):
            self._outlived = 0
            if gc.get_freeze_count() > 2 * self._live:
                self._collect_everything()

    def _collect_everything(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._live = gc.get_freeze_count()
        self._outlived = 0
