"""Void attempts: what makes an attempt at a call void, and how the call is tried again, with or without some events."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from threadline.kernel.errors import EventRejected, Unavailable

TOO_MANY_CHANGES = "too_many_changes"
"""Code of an event whose consequences no batch can hold."""
PROJECTION_FAILED = "projection_failed"
"""Code of an event about which a projection has raised."""
BEING_ERASED = "being_erased"
"""Code of an event that names a person who is being erased; it is not logged as rejected."""
FENCED = "fenced"
"""Code of a request whose own conditions (a lease, a pending timer) no longer hold; it is not logged as rejected."""
ATTEMPTS_MAX = 64
"""Attempts in a row that settle nothing, lost to other processes, before the call fails."""
PAUSE_SECONDS_MAX = 0.1


class ConcurrencyConflict(Exception):
    """Another process has changed what this attempt was built on."""


class UnrecordableEvents(Exception):
    """Some events cannot be recorded."""

    def __init__(self, positions: Sequence[int], code: str, message: str) -> None:
        super().__init__(message)
        self.positions = positions
        """Of their requests in the call; empty where only the caller knows them."""
        self.code = code


class Isolation(NamedTuple):
    """Positions of requests that made an attempt void, by how they are tried from then on."""

    alone: set[int]
    """They share no batch with those after them."""
    unjoined: set[int]
    """They merge nobody: no batch could hold the merge."""


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
