"""The one writer: requests that wait together are committed together, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from threadline.engine.engine import Engine
from threadline.engine.recording.validation import Checked, ValidatedEvent
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.kernel.event import Receipt
from threadline.kernel.rejected import RejectedEntry
from threadline.surfaces.http.answers.problem import NotNow

T = TypeVar("T")
log = logging.getLogger("threadline.http")

SHARE_EVENTS = 20
"""Events of one person in one group: whoever else comes waits for so many of them at most. In smaller groups the cost
of each commit would outweigh that of its events."""
SHARE_OF_OTHERS = 8
"""Where more is to be recorded for others, one person may have this part of it: a request that is cut goes on behind
requests that came later, and then the newest events of active people are late ones, which take much longer."""
SHARE_EVENTS_MIN, SHARE_SECONDS = 4, 0.005
"""The share is smaller after a group whose events took so long that a whole share of them would take longer than this,
in CPU: whatever makes a person's events laborious, who comes next waits about as long as for ordinary ones."""
LARGE_BYTES = 4 * 1_024
"""A larger event counts as several against its person's share, one for each further so many bytes."""


class _Waiting(msgspec.Struct, eq=False):
    """One request's events: whose each is, how many were handed to a commit, and the receipts so far."""

    checked: Sequence[Checked]
    people: Sequence[str]
    """Of each event its likely person; empty for a duplicate."""
    future: asyncio.Future[list[Receipt]]
    receipts: list[Receipt] = []
    taken: int = 0


_Piece = tuple[_Waiting, Sequence[Checked]]


class Writer:
    """Collects the events of all requests that wait and records them in groups. Lives on the server's event loop.

    While one group commits the next gathers, already validated, so that under load a commit serves many requests and
    without load a request waits for nobody. A large request alternates with small ones, and nobody has more than a
    share of a group: what is over it waits for the next one, with all that comes after it in the same request.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        commit_events_max: int,
        queue_events_max: int,
        observe: Callable[[float], None] = lambda seconds: None,
        cpu_seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        self._engine = engine
        self._commit_events_max = commit_events_max
        self._queue_events_max = queue_events_max
        self._observe = observe
        self._cpu_seconds = cpu_seconds
        self._waiting: deque[_Waiting] = deque()
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "threadline-writer")
        self._rejecting = asyncio.Lock()
        self._share = SHARE_EVENTS
        """Of each person in the next group."""
        self._events_of: Counter[str] = Counter()
        """Events that wait, by their person."""
        self.queued = 0
        """Events that wait for their commit or are in it."""

    def refuse_excess(self, events: int) -> None:
        """Raise `Unavailable` when too many wait already for so many more."""
        if self.queued and self.queued + events > self._queue_events_max:
            raise NotNow(f"{self.queued} events wait to be written; send these again in a moment")

    async def record(self, checked: Sequence[Checked]) -> list[Receipt]:
        """The receipts of these events, once all of them are durable. Raises `Unavailable` when too many wait."""
        if not checked:
            return []
        self.refuse_excess(len(checked))
        likely = self._engine.recorder.likely_person
        people = [likely(item) if isinstance(item, ValidatedEvent) else "" for item in checked]
        waiting = _Waiting(checked, people, asyncio.get_running_loop().create_future())
        self.queued += len(checked)
        self._events_of.update(people)
        self._waiting.append(waiting)
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        try:
            return await waiting.future
        finally:
            self.queued -= len(checked)

    async def reject(self, entries: Sequence[RejectedEntry]) -> None:
        """Keep these in the rejected log: between two groups as many as one person may have of a group."""
        for start in range(0, len(entries), SHARE_EVENTS):
            some = entries[start : start + SHARE_EVENTS]
            async with self._rejecting:
                await self.run(partial(self._engine.rejected.add, some))

    async def run(self, work: Callable[[], T]) -> T:
        """Run other work that writes in the writer's thread, between two groups."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Wait until everything that was taken is committed, then end the thread."""
        while self._task is not None:
            await asyncio.wait([self._task])
        self._thread.shutdown()

    async def _drain(self) -> None:
        waiting: list[_Waiting] = []
        try:
            while self._waiting:
                waiting = [*self._waiting]
                await self._commit(self._take())
        except Exception as error:
            # Or whoever is in the queue would wait for ever for a group that cannot be made.
            log.exception("no group could be made of what waits")
            self._waiting.clear()
            self._events_of.clear()
            _fail([(waiter, ()) for waiter in waiting], error)
        finally:
            # Between the look at the queue and this line nothing else runs, so no request is left without a task.
            self._task = None

    def _take(self) -> list[_Piece]:
        """The next group: of each request, in its own order, what the group and the shares of its people have room for.

        Who got nothing is first in line for the next one, who got something is last.
        """
        room, shares = self._commit_events_max, dict[str, int]()
        wanted = self._events_of.total()
        pieces: list[_Piece] = []
        passed_over: list[_Waiting] = []
        unfinished: list[_Waiting] = []
        while room and self._waiting:
            waiting = self._waiting.popleft()
            if waiting.future.done():
                self._wait_no_more(waiting.people[waiting.taken :])
                continue
            part = self._part(waiting, room, shares, wanted)
            if not part:
                passed_over.append(waiting)
                continue
            waiting.taken += len(part)
            room -= len(part)
            pieces.append((waiting, part))
            if waiting.taken < len(waiting.checked):
                unfinished.append(waiting)
        self._waiting.extendleft(reversed(passed_over))
        self._waiting.extend(unfinished)
        return pieces

    def _part(self, waiting: _Waiting, room: int, shares: dict[str, int], wanted: int) -> Sequence[Checked]:
        """As many events of a request as fit. ``shares``: what each person may still have in the group; ``wanted``: how
        many events waited when it began."""
        checked, start = waiting.checked, waiting.taken
        stop = min(len(checked), start + room)
        for at in range(start, stop):
            item, person = checked[at], waiting.people[at]
            if isinstance(item, ValidatedEvent):
                share = shares.get(person)
                if share is None:
                    others = min(wanted - self._events_of[person], self._commit_events_max)
                    share = max(self._share, others // SHARE_OF_OTHERS)
                if share <= 0:
                    stop = at
                    break
                shares[person] = share - 1 - len(item.encoded) // LARGE_BYTES
        self._wait_no_more(waiting.people[start:stop])
        return checked[start:stop]

    def _wait_no_more(self, people: Sequence[str]) -> None:
        for person in people:
            self._events_of[person] -= 1
            if not self._events_of[person]:
                del self._events_of[person]

    async def _commit(self, pieces: list[_Piece]) -> None:
        try:
            receipts = await asyncio.get_running_loop().run_in_executor(self._thread, self._record, pieces)
        except Unavailable as error:
            # It is the store that cannot: trying each request by itself would only keep all of them waiting.
            _fail(pieces, error)
            return
        except Exception as error:
            # One caller's fault, or ours in one request, must not take along the requests beside it.
            if not isinstance(error, ThreadlineError):
                log.error("a group of %d requests failed", len(pieces), exc_info=error)
            await self._commit_singly(pieces, error)
            return
        start = 0
        for waiting, part in pieces:
            waiting.receipts += receipts[start : start + len(part)]
            start += len(part)
            if len(waiting.receipts) == len(waiting.checked) and not waiting.future.done():
                waiting.future.set_result(waiting.receipts)

    async def _commit_singly(self, pieces: list[_Piece], error: Exception) -> None:
        if len(pieces) == 1:
            _fail(pieces, error)
            return
        for piece in pieces:
            await self._commit([piece])

    def _record(self, pieces: list[_Piece]) -> list[Receipt]:
        began, cpu_began = time.perf_counter(), self._cpu_seconds()
        receipts = self._engine.recorder.record_checked([event for _, part in pieces for event in part])
        self._observe(time.perf_counter() - began)
        share = 2 * self._share  # of a smaller group most is the cost of a commit: it says little of its events
        if len(receipts) >= SHARE_EVENTS_MIN:
            share = int(SHARE_SECONDS * len(receipts) / max(self._cpu_seconds() - cpu_began, 1e-9))
        self._share = max(SHARE_EVENTS_MIN, min(SHARE_EVENTS, share))
        return receipts


def _fail(pieces: list[_Piece], error: Exception) -> None:
    for waiting, _ in pieces:
        if not waiting.future.done():
            waiting.future.set_exception(error)
