"""Retries of void attempts: after a lost race, or without the events that made the attempt void."""

from __future__ import annotations

import random
import time

from threadline.engine.recording.conflicts import TOO_MANY_CHANGES, UnrecordableEvents
from threadline.engine.recording.validation import Isolation
from threadline.kernel.errors import EventRejected, Unavailable

ATTEMPTS_MAX = 64
"""Attempts in a row that settle nothing, lost to other processes, before the call fails."""
PAUSE_SECONDS_MAX = 0.1


class Retries:
    """The attempts at one call."""

    __slots__ = ("_attempts", "_settled")

    def __init__(self) -> None:
        self._attempts = 0
        self._settled = 0

    @property
    def begun(self) -> bool:
        """Whether an attempt has been made."""
        return self._attempts + self._settled > 0

    def again(self, settled: int = 0) -> None:
        """Wait before the next attempt, with jitter: longer after each that settled nothing. ``settled`` measures the
        progress. Raises `Unavailable` after too many."""
        # An attempt that settled something was not lost to other writers.
        self._attempts, self._settled = (0 if settled > self._settled else self._attempts + 1), settled
        if self._attempts == ATTEMPTS_MAX:
            raise Unavailable("other writers keep changing the same people; try again")
        if self._attempts:
            time.sleep(random.uniform(0, min(0.001 * 2**self._attempts, PAUSE_SECONDS_MAX)))


def isolate(error: UnrecordableEvents, isolation: Isolation, refused: dict[int, EventRejected]) -> None:
    """Isolate the requests that made an attempt void; reject those that were isolated already."""
    unfit = set(error.positions)
    assert unfit, "whatever is recorded here belongs to a request"
    if len(unfit) > 1 and not unfit <= isolation.alone:
        # One of a batch is unrecordable: with a batch for each, its neighbours are recorded.
        isolation.alone.update(unfit)
    elif error.code == TOO_MANY_CHANGES and not unfit <= isolation.unjoined:
        # The merge may be too large for a batch: then the merge is quarantined, and the event recorded.
        isolation.unjoined.update(unfit)
    else:
        refused.update({position: EventRejected(error.code, str(error)) for position in unfit})
