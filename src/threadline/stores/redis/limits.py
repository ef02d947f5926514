"""Rate limits shared by all processes: an atomic sliding window in Redis for each name."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from threadline.stores.redis.client import RedisServer, RedisUnreachable

# One sorted set per name: each request that passed is a member ``serial:events`` until its time is over, which is its
# score, microseconds. The members ``total`` and ``serial`` have what they count as their score, far below any time.
# What would stay longer than any request can is of a clock that was set back since, and is dropped.
# People may be many in one request, so each is but a value: the time at which nothing of their burst is missing, and
# what the last request took.
_TAKE = """
local FIRST = 1e12
local now = ARGV[2] + 0
if now == 0 then
    local clock = redis.call('TIME')
    now = clock[1] * 1000000 + clock[2]
end
local events, wait, totals = ARGV[1] + 0, 0, {}
local last = ARGV[3] + 0
local rate_of_people, burst_of_people = ARGV[4] + 0, ARGV[5] + 0
local function count(member) return string.match(member, ':(%d+)$') + 0 end
for index = 1, last do
    local key, rate, burst = KEYS[index], ARGV[2 * index + 4] + 0, ARGV[2 * index + 5] + 0
    local gone = redis.call('ZRANGEBYSCORE', key, FIRST, now)
    if #gone > 0 then
        local sum = 0
        for _, member in ipairs(gone) do sum = sum + count(member) end
        redis.call('ZREMRANGEBYSCORE', key, FIRST, now)
        redis.call('ZINCRBY', key, -sum, 'total')
    end
    local total = (redis.call('ZSCORE', key, 'total') or 0) + 0
    totals[index] = total
    local entries = total >= burst and redis.call('ZRANGEBYSCORE', key, FIRST, '+inf', 'WITHSCORES') or {}
    -- Without this a source would be refused until the day that the clock showed before it was set back.
    while #entries > 0 and entries[#entries] - now > (burst + count(entries[#entries - 1])) / rate * 1000000 + 1 do
        table.remove(entries)
        local member = table.remove(entries)
        total = total - count(member)
        redis.call('ZINCRBY', key, -count(member), 'total')
        redis.call('ZREM', key, member)
        totals[index] = total
    end
    if total >= burst then
        local at = 1
        while total >= burst do
            total = total - count(entries[at])
            if total < burst then wait = math.max(wait, entries[at + 1] - now) end
            at = at + 2
        end
    end
end
if wait > 0 then return {wait} end
local waits, full, anybody = {0}, {}, #KEYS == last
for index = last + 1, #KEYS do
    local at, taken = string.match(redis.call('GET', KEYS[index]) or '', '^(%d+):(%d+)$')
    at = math.max(now, (at or 0) + 0)
    if at - now > (burst_of_people + (taken or 0)) / rate_of_people * 1000000 then at = now end
    local over = math.ceil(at - now - (burst_of_people - 1) / rate_of_people * 1000000)
    waits[index - last + 1] = math.max(0, over)
    if over <= 0 then
        anybody = true
        full[index] = at + ARGV[last + index + 5] / rate_of_people * 1000000
    end
end
if not anybody then return waits end
for index, at in pairs(full) do
    local value = string.format('%.0f', at) .. ':' .. ARGV[last + index + 5]
    redis.call('SET', KEYS[index], value, 'PX', math.ceil((at - now) / 1000) + 1000)
end
for index = 1, last do
    local key, rate, burst = KEYS[index], ARGV[2 * index + 4] + 0, ARGV[2 * index + 5] + 0
    local stay = (burst + math.max(0, totals[index] + events - burst)) / rate * 1000000
    local serial = redis.call('ZINCRBY', key, 1, 'serial')
    redis.call('ZADD', key, string.format('%.0f', now + stay), serial .. ':' .. events)
    redis.call('ZINCRBY', key, events, 'total')
    redis.call('PEXPIRE', key, math.ceil(stay / 1000) + 1000)
end
return waits
"""

PEOPLE_AT_ONCE = 500
"""While a script runs Redis answers nobody else; of more people it is asked several times."""

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
        """See `SharedLimits.take`; None where Redis does not answer."""
        taken = self.take_of_people(limits, events, (0.0, 0), ())
        return None if taken is None else taken[0]

    def take_of_people(
        self,
        limits: Sequence[tuple[str, float, int]],
        events: int,
        person: tuple[float, int],
        people: Sequence[tuple[str, int]],
    ) -> tuple[float, list[float]] | None:
        """See `SharedLimits.take_of_people`."""
        if self._seconds() < self._unreachable_until:
            return None
        waits: list[float] = []
        try:
            for start in range(0, len(people) or 1, PEOPLE_AT_ONCE):
                some = people[start : start + PEOPLE_AT_ONCE]
                wait, *theirs = self._ask(limits, events, person, some)
                if wait:
                    return wait, []
                waits += theirs
                if not all(theirs):
                    limits = ()  # with the first who may pass they have counted it all
        except RedisUnreachable as error:
            self._unreachable_until = self._seconds() + self._retry
            log.warning("each process limits by itself as long as the cache does not answer: %s", error)
            return None
        return 0.0, waits

    def _ask(
        self,
        limits: Sequence[tuple[str, float, int]],
        events: int,
        person: tuple[float, int],
        people: Sequence[tuple[str, int]],
    ) -> list[float]:
        keys = [f"threadline:limit:{name}" for name, *_ in (*limits, *people)]
        windows = [number for _, rate, burst in limits for number in (rate, burst)]
        counts = [count for _, count in people]
        waits: list[int] = self._take(keys, [events, self._clock(), len(limits), *person, *windows, *counts])
        return [wait / 1_000_000 for wait in waits]
