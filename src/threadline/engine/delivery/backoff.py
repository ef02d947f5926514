"""Due items that cannot be settled here are skipped for a while, longer each time, so that others get through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from threadline.engine.delivery.put_off import IsBelieved, PutOff
from threadline.kernel.sender import rest_seconds
from threadline.kernel.store import Item, Key, Store, beyond
from threadline.kernel.time import SECOND, Clock, time_key

_RESTING_MAX = 10_000
_PAGE = 100
"""Items read at a time where some are skipped: looking for one must not read a thousand one by one."""


class _Rest(NamedTuple):
    """From when until when an item is skipped, and how often it was."""

    began: int
    until: int
    times: int


class Backoff:
    """Reads due items, except those being skipped, and what a clock that was ahead has put off.

    Not thread-safe: each thread has its own.
    """

    def __init__(self, store: Store, clock: Clock, believed: Mapping[str, IsBelieved]) -> None:
        self._store = store
        self._clock = clock
        self._rests: dict[Key, _Rest] = {}
        self._put_off = PutOff(store, clock, believed)

    def due(self, table: str, partition: str, limit: int) -> list[Item]:
        """A page of due items that are not skipped."""
        now, start = self._clock(), ""
        due: list[Item] = []
        page = max(limit, _PAGE) if self._rests else limit
        while len(due) < limit:
            items = self._store.query(table, partition, start=start, stop=time_key(now + 1), limit=page)
            due += [item for item in items if not self._is_resting(item.key, now)]
            if len(items) < page:
                break
            start = beyond(items[-1].key.sort)
        if len(due) < limit:
            due += self._put_off.find(table, partition, limit - len(due), lambda item: self._is_resting(item.key, now))
        return due[:limit]

    def rest(self, item: Item) -> int:
        """Skip an item for a while; returns how often it has been skipped."""
        before = self._rests.get(item.key)
        times = 0 if before is None else before.times
        if len(self._rests) >= _RESTING_MAX:
            self._rests.pop(next(iter(self._rests)))
        now = self._clock()
        self._rests[item.key] = _Rest(now, now + rest_seconds(times) * SECOND, times + 1)
        return times + 1

    def _is_resting(self, key: Key, now: int) -> bool:
        rest = self._rests.get(key)
        # A clock that is set back to before it began would make it longer.
        return rest is not None and rest.began <= now < rest.until
