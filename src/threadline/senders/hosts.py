"""Circuit breakers by host, for addresses in rules: these share queues, so that each host backs off by itself."""

from __future__ import annotations

import threading
from typing import NamedTuple

from threadline.kernel.sender import DESTINATION_FAILURES_MAX, rest_seconds
from threadline.kernel.time import SECOND, Clock

HOSTS_MAX = 1_000
"""Hosts in memory; beyond that the one whose last failure is oldest is dropped."""
TEST_SECONDS = 10
"""Time limit of the call that tests a host, before another one may."""


class _Failing(NamedTuple):
    failures: int = 0
    """In a row, since it was called again."""
    rests: int = 0
    """How often in a row it was left alone."""
    since: int = 0
    until: int = 0
    """While it rests, or is tested, nothing else goes there from the one instant until the other. A clock that is set
    back to before that ends it."""
    tested: bool = False


class Hosts:
    """The failures that this process has seen. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failing: dict[str, _Failing] = {}

    def wait(self, host: str) -> float:
        """Seconds to wait before a host may be called; 0.0: now.

        After a back-off one caller tests the host, and the others wait for the outcome.
        """
        with self._lock:
            failing = self._failing.get(host)
            if failing is None or not failing.rests:
                return 0.0
            now = self._clock()
            if failing.since <= now < failing.until:
                return (failing.until - now) / SECOND
            self._failing[host] = failing._replace(since=now, until=now + TEST_SECONDS * SECOND, tested=True)
            return 0.0

    def heard(self, host: str, *, failing: bool) -> None:
        """What came of a call."""
        with self._lock:
            before = self._failing.pop(host, _Failing())
            if not failing:
                return
            after = before._replace(failures=before.failures + 1)
            if before.tested or (not before.rests and after.failures >= DESTINATION_FAILURES_MAX):
                now = self._clock()
                after = _Failing(rests=before.rests + 1, since=now, until=now + rest_seconds(before.rests) * SECOND)
            self._failing[host] = after
            if len(self._failing) > HOSTS_MAX:
                del self._failing[next(iter(self._failing))]
