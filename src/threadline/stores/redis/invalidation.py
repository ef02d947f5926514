"""Invalidation: the scripts by which a commit takes cached copies away, and no reader puts an outdated one back.

Under each cached partition stand two hashes. ``v:`` holds values: items by sort, pages by their question. ``s:`` holds
who is about to change the partition (``w<token>``, and until when that is believed), the newest of these (``last``)
and the licence to fill (``lease``). A reader fills only under a licence that was given when nobody was writing and that
no writer has taken back since; a writer puts its own value only if nobody wrote beside it. Whoever comes between
leaves the partition empty.

``alive`` is the counter that tokens and licences are drawn from. Where it is gone, so is everything else: LOST. It
goes by itself when nobody has used this life for a week.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from threadline.stores.redis.client import RedisServer, RedisUnreachable

DOUBT_MS = 600_000
"""How long a writer that said nothing more is taken to be still about to commit."""
LEASE_MS = 30_000

_PRELUDE = (
    f"local DOUBT = {DOUBT_MS}\n"
    """
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('LOST') end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function draw()
    local number = redis.call('INCR', KEYS[1])
    redis.call('EXPIRE', KEYS[1], 604800)
    return number
end
local function writers(state)
    local count = 0
    local fields = redis.call('HGETALL', state)
    for at = 1, #fields, 2 do
        if string.sub(fields[at], 1, 1) == 'w' then
            local wait = fields[at + 1] - now
            if wait > 0 and wait <= DOUBT then count = count + 1 else redis.call('HDEL', state, fields[at]) end
        end
    end
    return count
end
"""
)
_READ = """
local answers = {}
for at = 2, #KEYS, 2 do
    local value, state = KEYS[at], KEYS[at + 1]
    local found = redis.call('HGET', value, ARGV[at / 2 + 1])
    if not found then
        found = 0
        if writers(state) == 0 then
            found = redis.call('HGET', state, 'lease')
            if not found then
                found = draw()
                redis.call('HSET', state, 'lease', found)
                redis.call('PEXPIRE', state, ARGV[1])
            end
            found = found + 0
        end
    end
    answers[#answers + 1] = found
end
return answers
"""
_FILL = """
for at = 2, #KEYS, 2 do
    local value, state, first = KEYS[at], KEYS[at + 1], at / 2 * 4 - 3
    if redis.call('HGET', state, 'lease') == ARGV[first] then
        redis.call('HSET', value, ARGV[first + 1], ARGV[first + 2])
        if redis.call('PTTL', value) < 0 then redis.call('PEXPIRE', value, ARGV[first + 3]) end
    end
end
return 0
"""
_MARK = """
local token = draw()
local answers = {token}
for at = 2, #KEYS, 2 do
    local value, state = KEYS[at], KEYS[at + 1]
    answers[#answers + 1] = writers(state)
    redis.call('DEL', value)
    redis.call('HDEL', state, 'lease')
    redis.call('HSET', state, 'w' .. token, now + ARGV[1], 'last', token)
    redis.call('PEXPIRE', state, ARGV[1])
end
return answers
"""
_SETTLE = """
local next = 2
for at = 2, #KEYS, 2 do
    local value, state = KEYS[at], KEYS[at + 1]
    local beside, lifetime, count = ARGV[next], ARGV[next + 1], ARGV[next + 2] + 0
    local mine = redis.call('HDEL', state, 'w' .. ARGV[1]) == 1
    local alone = mine and beside == '0' and redis.call('HGET', state, 'last') == ARGV[1]
    if alone and count > 0 then
        for field = next + 3, next + 1 + 2 * count, 2 do redis.call('HSET', value, ARGV[field], ARGV[field + 1]) end
        redis.call('PEXPIRE', value, lifetime)
    elseif not alone then
        redis.call('DEL', value)
    end
    if writers(state) == 0 then redis.call('DEL', state) end
    next = next + 3 + 2 * count
end
return 0
"""

Place = tuple[str, str]
"""A table and a partition of it: what is marked, filled and lost as one."""


class Fill(NamedTuple):
    """What a reader brings from the store, under the licence it was given before it went there."""

    place: Place
    lease: int
    field: bytes
    value: bytes
    lifetime_ms: int


class Marked(NamedTuple):
    """A writer's marks: its token, and for each place how many others were about to write there."""

    token: int
    beside: dict[Place, int]


class RedisCache:
    """What Redis keeps under one nonce. Every method may raise `RedisUnreachable` or `RedisLost`."""

    def __init__(self, server: RedisServer, nonce: str) -> None:
        self._prefix = f"threadline:{nonce}:"
        self._server = server
        self._read, self._fill, self._mark, self._settle = (
            server.script(_PRELUDE + text) for text in (_READ, _FILL, _MARK, _SETTLE)
        )

    def begin(self) -> str:
        """Begin this life, empty; answers the run id of the server it is in."""
        run_id = self._server.run_id()
        if not run_id:
            raise RedisUnreachable("INFO server does not tell the run id, by which a restart is noticed")
        self._server.set(self._prefix + "alive", 0)
        return run_id

    def read(self, wanted: Sequence[tuple[Place, bytes]]) -> list[bytes | int]:
        """For each field its value, or else the licence to fill it; 0 where somebody is about to write."""
        answers: list[Any] = self._read(self._keys([place for place, _ in wanted]), [LEASE_MS, *(f for _, f in wanted)])
        return answers

    def fill(self, fills: Sequence[Fill]) -> None:
        """Keep what was read from the store, as far as nobody was about to change it since the licence was given."""
        arguments = [argument for f in fills for argument in (f.lease, f.field, f.value, f.lifetime_ms)]
        self._fill(self._keys([fill.place for fill in fills]), arguments)

    def mark(self, places: Sequence[Place]) -> Marked:
        """Say that these places are about to change: nothing is answered from them until it is settled."""
        token, *beside = self._mark(self._keys(places), [DOUBT_MS])
        return Marked(token, dict(zip(places, beside, strict=True)))

    def settle(self, marked: Marked, values: dict[Place, dict[bytes, bytes]], lifetimes_ms: dict[str, int]) -> None:
        """Say that the commit is over. ``values`` are written through where nobody else was writing."""
        arguments: list[bytes | int] = [marked.token]
        for place, beside in marked.beside.items():
            fields = values.get(place, {})
            arguments += [beside, lifetimes_ms[place[0]], len(fields)]
            arguments += [part for field in fields.items() for part in field]
        self._settle(self._keys(list(marked.beside)), arguments)

    def close(self) -> None:
        """Give the connections up."""
        self._server.close()

    def _keys(self, places: Sequence[Place]) -> list[str]:
        keys = [self._prefix + "alive"]
        for table, partition in places:
            # Neither half can run into the other: the length says where the table ends.
            name = f"{len(table)}:{table}/{partition}"
            keys += [f"{self._prefix}v:{name}", f"{self._prefix}s:{name}"]
        return keys
