"""Python's garbage collector in a server: small steps at moments of its choice, so that no request waits for a long one."""

from __future__ import annotations

import gc
from types import TracebackType

STEP_OBJECTS = 5_000
"""So many more objects were made than let go since the last step: the next one looks through them, in about 5 ms."""
WHOLE_OBJECTS_MIN = 1_000_000
"""Everything is looked through at the earliest when so many objects have outlived their step."""


class SteppedCollector:
    """In force while its ``with`` block is; the collector is the process's, so there is one at a time.

    By itself Python looks through all that was made since the last time at once, and through everything old now and
    then: people in the writer's cache made that 120 ms, in which no request was answered. Here what outlives one step is
    left out of all later ones. What is let go is freed at once as ever; only objects in a cycle need the collector, and
    those that outlive a step wait until as much has grown as was there before.
    """

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
        """Look through what is new, if it is enough. Call it where little is under way, as after a commit."""
        made = gc.get_count()[0]
        if made < STEP_OBJECTS:
            return
        gc.collect(0)
        gc.freeze()
        self._outlived += made
        if self._outlived > max(WHOLE_OBJECTS_MIN, self._live):
            self._outlived = 0  # most of it has been let go since, unless the count says otherwise
            if gc.get_freeze_count() > 2 * self._live:
                gc.unfreeze()
                self._collect_everything()

    def _collect_everything(self) -> None:
        gc.collect()
        gc.freeze()
        self._live = gc.get_freeze_count()
        self._outlived = 0
