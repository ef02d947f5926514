"""The pace of a queue: how many effects may be sent now, so that no more leave in a second than its rate."""

from __future__ import annotations

from threadline.kernel.sender import Queue
from threadline.kernel.time import SECOND, Clock

_PORTION_SECONDS = 0.1
"""What is due within so much time is sent together, if so many are sent at once."""


class Pace:
    """Spreads what is sent evenly. Not thread-safe: one worker sends a queue."""

    def __init__(self, queue: Queue, clock: Clock) -> None:
        self._clock = clock
        self._at_once = queue.at_once
        self._each = 0 if queue.per_second is None else max(int(SECOND / queue.per_second), 1)
        """Microseconds for one."""
        if self._each:
            self._at_once = max(min(queue.at_once, int(_PORTION_SECONDS * SECOND) // self._each), 1)
        self._next = 0

    @property
    def room(self) -> int:
        """How many may be sent together now."""
        return 0 if self.wait_seconds else self._at_once

    @property
    def wait_seconds(self) -> float:
        """How long until something may be sent."""
        now = self._clock()
        # After a step back of the clock nothing waits longer than what was sent last.
        self._next = min(self._next, now + self._each * self._at_once)
        return max(self._next - now, 0) / SECOND

    def note(self, sent: int) -> None:
        """So many were sent."""
        self._next = max(self._next, self._clock()) + self._each * sent if self._each else 0
