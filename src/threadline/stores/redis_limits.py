"""Rate limits shared by all processes: an atomic sliding window in Redis for each name."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from threadline.stores.redis_client import RedisServer, RedisUnreachable

# One sorted set per name: each request that passed is a member ``serial:events`` until its time is over, which is its
# score, microseconds. The members ``total`` and ``serial`` have what they count as their score, far below any time.
_TAKE = """
local FIRST = 1e12
local now = ARGV[2] + 0
if now == 0 then
    local clock = redis.call('TIME')
    now = clock[1] * 1000000 + clock[2]
end
local events, wait, totals = ARGV[1] + 0, 0, {}
local function count(member) return string.match(member, ':(%d+)$') + 0 end
for index, key in ipairs(KEYS) do
    local burst = ARGV[2 * index + 2] + 0
    local gone = redis.call('ZRANGEBYSCORE', key, FIRST, now)
    if #gone > 0 then
        local sum = 0
        for _, member in ipairs(gone) do sum = sum + count(member) end
        redis.call('ZREMRANGEBYSCORE', key, FIRST, now)
        redis.call('ZINCRBY', key, -sum, 'total')
    end
    local total = (redis.call('ZSCORE', key, 'total') or 0) + 0
    totals[index] = total
    if total >= burst then
        local entries = redis.call('ZRANGEBYSCORE', key, FIRST, '+inf', 'WITHSCORES')
        local at = 1
        while total >= burst do
            total = total - count(entries[at])
            if total < burst then wait = math.max(wait, entries[at + 1] - now) end
            at = at + 2
        end
    end
end
if wait > 0 then return wait end
for index, key in ipairs(KEYS) do
    local rate, burst = ARGV[2 * index + 1] + 0, ARGV[2 * index + 2] + 0
    local stay = (burst + math.max(0, totals[index] + events - burst)) / rate * 1000000
    local serial = redis.call('ZINCRBY', key, 1, 'serial')
    redis.call('ZADD', key, string.format('%.0f', now + stay), serial .. ':' .. events)
    redis.call('ZINCRBY', key, events, 'total')
    redis.call('PEXPIRE', key, math.ceil(stay / 1000) + 1000)
end
return 0
"""

log = logging.getLogger("threadline.cache")


class RedisLimits:
    """Sliding windows that all processes with the same Redis share. Thread-safe; time is the time of Redis.

    As with the limits in memory a request passes as long as one event is left and may overdraw: what it takes too
    much stays in the window for as much longer. Without Redis it says so, and is asked again ``retry_seconds`` later.
    """

    def __init__(
        self,
        url: str,
        timeout_seconds: float,
        retry_seconds: float = 5.0,
        *,
        clock: Callable[[], int] = lambda: 0,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take = RedisServer(url, timeout_seconds).script(_TAKE)
        self._retry = retry_seconds
        self._clock = clock
        """Microseconds; 0 is the clock of Redis."""
        self._seconds = seconds
        self._unreachable_until = float("-inf")

    def take(self, limits: Sequence[tuple[str, float, int]], events: int) -> float | None:
        """Count events under all of these (name, events per second, burst) and answer 0.0; or count none under any,
        and answer the seconds until they may come again. None: Redis does not answer, and nothing limits."""
        if self._seconds() < self._unreachable_until:
            return None
        keys = [f"threadline:limit:{name}" for name, _, _ in limits]
        arguments = [each for _, rate, burst in limits for each in (rate, burst)]
        try:
            waits: int = self._take(keys, [events, self._clock(), *arguments])
        except RedisUnreachable as error:
            self._unreachable_until = self._seconds() + self._retry
            log.warning("each process limits by itself as long as the cache does not answer: %s", error)
            return None
        return waits / 1_000_000
