"""Rate limits: how many new events a source or an address may send, counted in memory or by all processes together."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from threadline.engine.credentials import Credential
from threadline.engine.engine import Engine
from threadline.kernel.event import Event
from threadline.surfaces.http.problem import RateLimited
from threadline.surfaces.http.writer import Writer

NAMES_MAX = 20_000
"""Names that are remembered; beyond it those that have not sent for longest start afresh."""


class SharedLimits(Protocol):
    """Limits that all processes count together."""

    def take(self, limits: Sequence[tuple[str, float, int]], events: int) -> float | None:
        """Count events under all of these (name, events per second, burst) and answer 0.0; or count none, and answer
        the seconds to wait. None: they cannot be counted together now."""
        ...


class Buckets:
    """Token buckets by name: ``burst`` events at once, refilled by ``per_second``. A rate of 0 lets all pass.

    A request passes as long as one event is left and may overdraw: a batch is never cut in two, and what it took too
    much is waited for by the next one.
    """

    def __init__(self, per_second: float, burst: int, seconds: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self._seconds = seconds
        self._levels: dict[str, tuple[float, float]] = {}
        """Name -> (events left, when that was so), least recently used first."""

    @property
    def on(self) -> bool:
        """Whether there is a limit at all."""
        return self.per_second > 0

    def wait(self, name: str) -> int:
        """Seconds until this name may send again, rounded up; 0 if it may now."""
        level = self._level(name)
        return 0 if level >= 1 else max(1, math.ceil((1 - level) / self.per_second))

    def charge(self, name: str, events: int) -> None:
        """Count events of a name that were let pass."""
        level = self._level(name) - events
        self._levels.pop(name, None)
        self._levels[name] = (level, self._seconds())
        while len(self._levels) > NAMES_MAX:
            del self._levels[next(iter(self._levels))]

    def _level(self, name: str) -> float:
        level, at = self._levels.get(name, (float(self.burst), self._seconds()))
        return min(float(self.burst), level + (self._seconds() - at) * self.per_second)


class RateLimits:
    """What every way in of events is counted under: its source, and the address it comes from."""

    def __init__(
        self,
        engine: Engine,
        writer: Writer,
        by_source: Buckets,
        by_address: Buckets,
        shared: SharedLimits | None = None,
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._by_source = by_source
        self._by_address = by_address
        self._shared = shared

    async def charge(
        self, told: Callable[[], Sequence[Event]], credential: Credential, address: str, rejected: int = 0
    ) -> None:
        """Count what is new among these events, and messages that can be no events but are kept all the same.

        Raises `RateLimited`; then nothing was counted, and nothing of the request may be recorded.
        """
        source = f"source:{credential.workspace}/{credential.name}"
        limits = [(self._by_source, source), (self._by_address, f"address:{address}")]
        limits = [(buckets, name) for buckets, name in limits if buckets.on]
        if not limits:
            return
        count = rejected + await self._writer.run(lambda: self._engine.fresh(told()))
        # A retry of what is recorded costs nothing and always passes: refusing it would only bring it again. Another
        # payload under a key that was used is no retry: it is kept, so it has to be paid for.
        if not count:
            return
        together = await self._charge_together(limits, count)
        wait = max(buckets.wait(name) for buckets, name in limits) if together is None else math.ceil(together)
        if wait:
            raise RateLimited(f"too many new events from here; come again in {wait} s", wait)
        # Here as well, so that what follows is known should the others be out of reach then.
        for buckets, name in limits:
            buckets.charge(name, count)

    async def _charge_together(self, limits: Sequence[tuple[Buckets, str]], count: int) -> float | None:
        shared = self._shared
        if shared is None:
            return None
        windows = [(name, buckets.per_second, buckets.burst) for buckets, name in limits]
        return await asyncio.to_thread(shared.take, windows, count)
