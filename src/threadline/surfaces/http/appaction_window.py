"""A sliding window: at most so many actions of a name within any stretch of time, computed to the microsecond."""

from __future__ import annotations

import math
from collections import deque

from threadline.kernel.time import MINUTE, SECOND, Clock

NAMES_MAX = 20_000
"""Names that are remembered; beyond it those that have not acted for longest start afresh."""


class Window:
    """``most`` actions of a name in any ``size`` microseconds; 0 lets all pass."""

    def __init__(self, most: int, clock: Clock, size: int = MINUTE) -> None:
        self.most = most
        self._clock = clock
        self._size = size
        self._times: dict[str, deque[int]] = {}
        """Name -> when it acted, least recently used name first."""

    def wait(self, name: str) -> int:
        """Seconds until this name may act again, rounded up; 0 if it may now."""
        times = self._times.get(name)
        if not self.most or times is None:
            return 0
        now = self._clock()
        # What lies ahead was counted before the clock was set back, and would otherwise never leave.
        while times and (times[0] <= now - self._size or times[-1] > now):
            times.popleft() if times[0] <= now - self._size else times.pop()
        return 0 if len(times) < self.most else max(1, math.ceil((times[0] + self._size - now) / SECOND))

    def charge(self, name: str) -> None:
        """Count one action of a name that was let pass."""
        if not self.most:
            return
        times = self._times.pop(name, None) or deque(maxlen=self.most)
        times.append(self._clock())
        self._times[name] = times
        while len(self._times) > NAMES_MAX:
            del self._times[next(iter(self._times))]
