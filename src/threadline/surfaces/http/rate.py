"""Rate limits: how many new events of a source, an address or a person; counted here, or by all processes together."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from threadline.engine.credentials import Credential
from threadline.engine.engine import Engine
from threadline.engine.recording.rejected_log import entry_of
from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event, Receipt
from threadline.surfaces.http.client_address import limited_name
from threadline.surfaces.http.problem import RateLimited
from threadline.surfaces.http.writer import Writer

T = TypeVar("T")

NAMES_MAX = 20_000
"""Names that are remembered; beyond it those that have not sent for longest start afresh."""
ENTRIES_AT_ONCE = 300
"""Refused events that the writer keeps in one go; between two of them the commits of others have their turn."""
PERSON_RATE_LIMITED = "person_rate_limited"
CODES = {
    PERSON_RATE_LIMITED: "its person is over the limit, others of the request are not; it can be re-submitted later",
}
"""Codes of rejections that are given here."""


class SharedLimits(Protocol):
    """Limits that all processes count together."""

    def take(self, limits: Sequence[tuple[str, float, int]], events: int) -> float | None:
        """Count events under all of these (name, events per second, burst) and answer 0.0; or count none, and answer
        the seconds to wait. None: they cannot be counted together now."""
        ...

    def take_of_people(
        self,
        limits: Sequence[tuple[str, float, int]],
        events: int,
        person: tuple[float, int],
        people: Sequence[tuple[str, int]],
    ) -> tuple[float, list[float]] | None:
        """The same, and with it count the events of people (name, events), each under a limit (events per second,
        burst) of their own; answers the seconds to wait, and those of each. It counts none either if everybody has
        to wait, and of those who have to nothing."""
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
        if level >= 1:
            return 0
        # Whoever keeps coming is not forgotten for having been let pass long ago.
        self._levels[name] = self._levels.pop(name)
        return max(1, math.ceil((1 - level) / self.per_second))

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
    """What every way in of events is counted under: its source, the address it comes from, and each event's person.

    A person is known here by the thread in which the event would stand, for which the store need not be asked.
    """

    def __init__(
        self,
        engine: Engine,
        writer: Writer,
        by_source: Buckets,
        by_address: Buckets,
        by_person: Buckets,
        shared: SharedLimits | None = None,
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._by_source = by_source
        self._by_address = by_address
        self._by_person = by_person
        self._shared = shared

    async def charge(
        self, told: Callable[[], Sequence[Event]], credential: Credential, address: str, rejected: int = 0
    ) -> dict[int, Receipt]:
        """Count what is new among these events, and messages that can be no events but are kept all the same.

        Answers the receipts of those that must not be recorded, by their places: their people are over the limit, and
        they are in the rejected log. Raises `RateLimited` if the request is over a limit, or nothing new in it is of
        anybody who is not; then nothing was counted, and nothing of the request may be recorded or kept.
        """
        source = f"source:{credential.workspace}/{credential.name}"
        limits = [(self._by_source, source), (self._by_address, f"address:{limited_name(address)}")]
        limits = [(buckets, name) for buckets, name in limits if buckets.on]
        if not limits and not self._by_person.on:
            return {}
        events, fresh, people = await self._writer.run(lambda: self._look(told()))
        # A retry of what is recorded costs nothing and always passes: refusing it would only bring it again. Another
        # payload under a key that was used is no retry: it is kept, so it has to be paid for.
        if not fresh and not rejected:
            return {}
        over = await self._charge(limits, rejected + len(fresh), _counts(fresh, people))
        return await self._refuse(events, [place for places in fresh for place in places if people[place] in over])

    async def charge_person(self, told: Callable[[], Sequence[Event]]) -> None:
        """Count an event that an operator wants recorded after all, if there is one, under its person's limit alone.

        Raises `RateLimited`; then nothing was counted.
        """
        if not self._by_person.on:
            return
        _, fresh, people = await self._writer.run(lambda: self._look(told()))
        await self._charge([], 0, _counts(fresh, people))

    def _look(self, events: Sequence[Event]) -> tuple[Sequence[Event], list[list[int]], list[str]]:
        """Of events: themselves, the places of each new thing that they say, and the name of each one's person."""
        threads = self._engine.threads(events) if self._by_person.on else [""] * len(events)
        return events, self._engine.fresh(events), [thread and f"person:{thread}" for thread in threads]

    async def _charge(
        self, limits: Sequence[tuple[Buckets, str]], count: int, people: Mapping[str, int]
    ) -> Container[str]:
        """Count under all of these limits, and under those of people; answers who of them is over theirs."""
        together = await self._charge_together(limits, count, people)
        if together is None:
            wait = max((buckets.wait(name) for buckets, name in limits), default=0)
            waits = {name: self._by_person.wait(name) for name in people}
        else:
            wait, waits = math.ceil(together[0]), dict(zip(people, map(math.ceil, together[1]), strict=True))
        if wait:
            raise RateLimited(f"too many new events from here; come again in {wait} s", wait)
        if waits and all(waits.values()):
            wait = min(waits.values())  # by then one of them can be recorded
            raise RateLimited(f"too many new events of one person; come again in {wait} s", wait)
        # Here as well, so that what follows is known should the others be out of reach then.
        for buckets, name in limits:
            buckets.charge(name, count)
        for name, events in people.items():
            if not waits[name]:
                self._by_person.charge(name, events)
        return {name for name, wait in waits.items() if wait}

    async def _charge_together(
        self, limits: Sequence[tuple[Buckets, str]], count: int, people: Mapping[str, int]
    ) -> tuple[float, list[float]] | None:
        shared = self._shared
        if shared is None:
            return None
        windows = [(name, buckets.per_second, buckets.burst) for buckets, name in limits]
        person = self._by_person.per_second, self._by_person.burst
        return await asyncio.to_thread(shared.take_of_people, windows, count, person, list(people.items()))

    async def _refuse(self, events: Sequence[Event], places: Sequence[int]) -> dict[int, Receipt]:
        error = EventRejected(PERSON_RATE_LIMITED, "too many new events of this person; what others did was taken")
        for start in range(0, len(places), ENTRIES_AT_ONCE):
            some = [events[place] for place in places[start : start + ENTRIES_AT_ONCE]]
            await self._writer.run(partial(self._keep, some, error))
        return {place: Receipt(status="rejected", code=error.code, message=str(error)) for place in places}

    def _keep(self, events: Sequence[Event], error: EventRejected) -> None:
        now = self._engine.clock()
        self._engine.reject([entry_of(event, error, now) for event in events])


def _counts(fresh: Sequence[Sequence[int]], people: Sequence[str]) -> Counter[str]:
    """How much that is new comes of each person; of nobody comes what can be no event."""
    return Counter(person for places in fresh if (person := people[places[0]]))


def admitted(told: Sequence[T], refused: Container[int]) -> list[T]:
    """What remains of what was told without what was refused by its place."""
    return [each for place, each in enumerate(told) if place not in refused]


def merged(receipts: Sequence[Receipt], refused: Mapping[int, Receipt]) -> list[Receipt]:
    """The receipts of what was recorded and of what was refused, in the order in which all of it was told."""
    given = iter(receipts)
    return [refused.get(place) or next(given) for place in range(len(receipts) + len(refused))]
