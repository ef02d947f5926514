"""What a clock that was ahead has put off to a day that was never meant: found now and then, and due at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from threadline.engine.delivery.retry_schedule import RETRY_SECONDS_MAX
from threadline.engine.scheduled import due_of, pending_effect
from threadline.kernel.sender import POSTPONED_SECONDS_MAX
from threadline.kernel.store import Item, Store, beyond
from threadline.kernel.time import CLOCK_SKEW_MAX, MINUTE, SECOND, Clock, time_key

LOOK_EVERY = MINUTE
_PAGE = 100

IsBelieved = Callable[[Item, int], bool]
"""(item, now) -> whether the instant that it waits for can be meant."""


class _Look(NamedTuple):
    """How far a partition was looked through, and when that began."""

    start: str
    """Empty: all of it was."""
    began: int


class PutOff:
    """Looks through what is not due yet: a page at a time, and all of it every minute or when the clock is set back.

    Not thread-safe: each thread has its own.
    """

    def __init__(self, store: Store, clock: Clock, believed: Mapping[str, IsBelieved]) -> None:
        self._store = store
        self._clock = clock
        self._believed = believed
        """By table; what is in others waits for the instant that it says."""
        self._looks: dict[tuple[str, str], _Look] = {}

    def find(self, table: str, partition: str, limit: int, skips: Callable[[Item], bool]) -> list[Item]:
        """Some of what is not believed, without what is skipped now; none while nothing is to be looked for."""
        is_believed, now = self._believed.get(table), self._clock()
        if is_believed is None:
            return []
        look = self._looks.get((table, partition))
        if look is None or not (look.start or look.began <= now < look.began + LOOK_EVERY) or now < look.began:
            look = _Look(time_key(now + CLOCK_SKEW_MAX), now)
        elif not look.start:
            return []
        items = self._store.query(table, partition, start=look.start, limit=_PAGE)
        doubted = [item for item in items if not is_believed(item, now) and not skips(item)][:limit]
        # What is found is read again until somebody has settled it.
        behind = "" if len(items) < _PAGE else beyond(items[-1].key.sort)
        self._looks[table, partition] = look._replace(start=doubted[0].key.sort if doubted else behind)
        return doubted


def effect_is_believed(item: Item, now: int) -> bool:
    """Whether an effect can be meant to wait so long: for an instant that its policy chose, or for its next attempt."""
    pending, due = pending_effect(item), due_of(item)
    longest = 0.0  # it was due when it was emitted
    if pending.postponed and pending.since == due:
        longest = POSTPONED_SECONDS_MAX * SECOND
    elif pending.attempts:
        longest = RETRY_SECONDS_MAX * SECOND
    elif pending.effect.due_at:
        return True
    return due <= now + longest + CLOCK_SKEW_MAX
