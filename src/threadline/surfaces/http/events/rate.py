"""Rate limits: how many new events of a source, an address or a person; counted here, or by all processes together."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from concurrent.futures import Executor
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from threadline.engine.credentials import Credential
from threadline.engine.engine import Engine
from threadline.engine.recording.duplicates import distinct
from threadline.engine.recording.rejected_log import entry_of
from threadline.engine.recording.validation import Checked, ValidatedEvent
from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Receipt
from threadline.surfaces.composition import SharedLimits
from threadline.surfaces.http.answers.problem import RateLimited
from threadline.surfaces.http.callers.access import limited_name
from threadline.surfaces.http.events.writer import Writer

T = TypeVar("T")

NAMES_MAX = 20_000
"""Names that are remembered; beyond it those that have not sent for longest start afresh."""
ALONE_SHARE = 0.1
"""Of a person's burst: for less than that a process does not ask the others, or each request would cost a round trip
and a look at the store for people who are nowhere near their limit."""
PERSON_RATE_LIMITED = "person_rate_limited"
CODES = {
    PERSON_RATE_LIMITED: "its person is over the limit, others of the request are not; it can be re-submitted later",
}
"""Codes of rejections that are given here."""


class Buckets:
    """Token buckets by name: ``burst`` events at once, refilled by ``per_second``. A rate of 0 lets all pass.

    A request passes as long as one event is left and may overdraw: a batch is never cut in two, and what it took too
    much is waited for by the next one.
    """

    def __init__(self, per_second: float, burst: int, seconds: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self.on = per_second > 0
        """Whether there is a limit at all."""
        self._seconds = seconds
        self._levels: dict[str, tuple[float, float]] = {}
        """Name -> (events left, when that was so), least recently used first."""

    def wait(self, name: str) -> int:
        """Seconds until this name may send again, rounded up; 0 if it may now."""
        level = self.level(name)
        if level >= 1:
            return 0
        # Whoever keeps coming is not forgotten for having been let pass long ago.
        self._levels[name] = self._levels.pop(name)
        return max(1, math.ceil((1 - level) / self.per_second))

    def charge(self, name: str, events: int) -> None:
        """Count events of a name that were let pass; negative: give back what was counted too much."""
        level = min(float(self.burst), self.level(name) - events)
        self._levels.pop(name, None)
        self._levels[name] = (level, self._seconds())
        while len(self._levels) > NAMES_MAX:
            del self._levels[next(iter(self._levels))]

    def level(self, name: str) -> float:
        """Events of this name that may pass now; below 0 while what was overdrawn is not made up for."""
        level, at = self._levels.get(name, (float(self.burst), self._seconds()))
        return min(float(self.burst), level + (self._seconds() - at) * self.per_second)


class Charge(NamedTuple):
    """What a request was charged, and what of it must not be recorded."""

    refused: Mapping[int, Receipt]
    """The receipts of events of people over their limit, by position; they are in the rejected log."""
    counted: Mapping[int, Sequence[tuple[Buckets, str]]] = MappingProxyType({})
    """Under which limits an event was counted before anybody looked whether it is new, by position."""

    def at(self, places: Sequence[int]) -> Charge:
        """The same, where the events that were looked at stand in these places of a request."""
        return Charge(
            {places[index]: receipt for index, receipt in self.refused.items()},
            {places[index]: limits for index, limits in self.counted.items()},
        )

    def settle(self, receipts: Sequence[Receipt] | None) -> None:
        """Give back what was no new event after all. None: nothing may be recorded, and it will be sent again."""
        for position, limits in self.counted.items():
            if receipts is None or receipts[position].status == "duplicate":
                for buckets, name in limits:
                    buckets.charge(name, -1)


class RateLimits:
    """What every way in of events is counted under: its source, the address it comes from, and each event's person.

    A person is known here by the thread in which the event would stand, for which the store need not be asked.
    ``tokens`` says whether people are limited in what comes with an API token, too. In ``thread`` whoever is near a
    limit waits for the store, and nobody else should.
    """

    def __init__(
        self,
        engine: Engine,
        writer: Writer,
        by_source: Buckets,
        by_address: Buckets,
        by_person: Buckets,
        shared: SharedLimits | None = None,
        *,
        thread: Executor,
        tokens: bool = False,
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._by_source = by_source
        self._by_address = by_address
        self._by_person = by_person
        self._shared = shared
        self._tokens = tokens
        self._thread = thread

    def concern(self, credential: Credential) -> bool:
        """Whether anything that comes with a credential is limited at all."""
        return self._by_source.on or self._by_address.on or self._limits_people(credential)

    async def charge(
        self, checked: Sequence[Checked], credential: Credential, address: str, rejected: int = 0
    ) -> Charge:
        """Count what is new among these events, and messages that can be no events but are kept all the same.

        Raises `RateLimited` if the request is over a limit, or nothing new in it is of anybody who is not; then nothing
        was counted, and nothing of the request may be recorded or kept.
        """
        limits: list[tuple[Buckets, str]] = []
        if self._by_source.on:
            limits.append((self._by_source, f"source:{credential.workspace}/{credential.name}"))
        if self._by_address.on:
            limits.append((self._by_address, f"address:{limited_name(address)}"))
        personal = self._limits_people(credential)
        if not limits and not personal:
            return Charge({})
        people = _people(checked) if personal else [""] * len(checked)
        things = list(distinct(checked).values())
        counts = _counts(things, people)
        if self._far_from(limits, rejected + len(things), counts):
            return self._charge_all(limits, rejected, counts, things, people)
        fresh = await self._fresh(checked)
        # A retry of what is recorded costs nothing and always passes: refusing it would only bring it again. Another
        # payload under a key that was used is no retry: it is kept, so it has to be paid for.
        if not fresh and not rejected:
            return Charge({})
        over = await self._charge(limits, rejected + len(fresh), _counts(fresh, people))
        places = [index for places in fresh for index in places if people[index] in over]
        return Charge(await self._refuse(checked, places))

    async def charge_person(self, checked: Sequence[Checked], credential: Credential) -> None:
        """Count an event that an operator wants recorded after all, if there is one, under its person's limit alone.

        Raises `RateLimited`; then nothing was counted.
        """
        if self._limits_people(credential):
            await self._charge([], 0, _counts(await self._fresh(checked), _people(checked)))

    def _limits_people(self, credential: Credential) -> bool:
        return self._by_person.on and (self._tokens or credential.kind != "token")

    async def _fresh(self, checked: Sequence[Checked]) -> list[list[int]]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.recorder.fresh, checked)

    def _far_from(self, limits: Sequence[tuple[Buckets, str]], count: int, people: Mapping[str, int]) -> bool:
        """Whether all may pass although nobody has looked how much of it is new, nor asked the other processes."""
        spare = 0
        if self._shared is not None:
            if limits:
                return False
            spare = math.ceil(self._by_person.burst * (1 - ALONE_SHARE))
        for buckets, name in limits:
            if buckets.level(name) < count + 1:
                return False
        for name, events in people.items():  # noqa: SIM110 — a generator would cost as much as what it looks at
            if self._by_person.level(name) < events + spare + 1:
                return False
        return True

    def _charge_all(
        self,
        limits: Sequence[tuple[Buckets, str]],
        rejected: int,
        counts: Mapping[str, int],
        things: Sequence[Sequence[int]],
        people: Sequence[str],
    ) -> Charge:
        for buckets, name in limits:
            buckets.charge(name, rejected + len(things))
        for name, events in counts.items():
            self._by_person.charge(name, events)
        counted: dict[int, Sequence[tuple[Buckets, str]]] = {}
        for first, *_ in things:
            counted[first] = [*limits, (self._by_person, people[first])] if people[first] else limits
        return Charge({}, counted)

    async def _charge(
        self, limits: Sequence[tuple[Buckets, str]], count: int, people: Mapping[str, int]
    ) -> Container[str]:
        """Count under all of these limits, and under those of people; returns who of them is over theirs."""
        together = await self._charge_together(limits, count, people)
        if together is None:
            wait = max((buckets.wait(name) for buckets, name in limits), default=0)
            waits = {name: self._by_person.wait(name) for name in people}
        else:
            # Nothing is said of people where the request itself has to wait.
            wait, waits = math.ceil(together[0]), dict(zip(people, map(math.ceil, together[1]), strict=False))
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

    async def _refuse(self, checked: Sequence[Checked], places: Sequence[int]) -> dict[int, Receipt]:
        error = EventRejected(PERSON_RATE_LIMITED, "too many new events of this person; what others did was taken")
        now = self._engine.clock()
        await self._writer.reject([entry_of(checked[index].request.event, error, now) for index in places])
        return {index: Receipt(status="rejected", code=error.code, message=str(error)) for index in places}


def _counts(things: Sequence[Sequence[int]], people: Sequence[str]) -> dict[str, int]:
    """How many of these things come of each person; of nobody comes what can be no event."""
    counts: dict[str, int] = {}
    for first, *_ in things:
        person = people[first]
        if person:
            counts[person] = counts.get(person, 0) + 1
    return counts


def _people(checked: Sequence[Checked]) -> list[str]:
    """The name of each event's person; "" for what can be no event."""
    return [f"person:{item.names[0].thread}" if isinstance(item, ValidatedEvent) else "" for item in checked]


def admitted(given: Sequence[T], refused: Collection[int]) -> Sequence[T]:
    """What remains of what was told without what was refused by its place."""
    return [item for index, item in enumerate(given) if index not in refused] if refused else given


def merged(receipts: Sequence[Receipt], refused: Mapping[int, Receipt]) -> list[Receipt]:
    """The receipts of what was recorded and of what was refused, in the order in which all of it was told."""
    result = list(receipts)
    for index in sorted(refused):
        result.insert(index, refused[index])
    return result
