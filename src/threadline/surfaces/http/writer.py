"""The one writer: requests that wait together are committed together, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.kernel.event import Event, Receipt
from threadline.surfaces.http.problem import NotNow

T = TypeVar("T")
log = logging.getLogger("threadline.http")


class _Waiting:
    """One request's events: how many were handed to a commit, and the receipts so far."""

    __slots__ = ("events", "future", "receipts", "taken")

    def __init__(self, events: Sequence[Event], future: asyncio.Future[list[Receipt]]) -> None:
        self.events = events
        self.future = future
        self.receipts: list[Receipt] = []
        self.taken = 0


_Piece = tuple[_Waiting, Sequence[Event]]


class Writer:
    """Collects the events of all requests that wait and records them in groups. Lives on the server's event loop.

    While one group commits the next gathers, so that under load a commit serves many requests and without load a
    request waits for nobody. A large request takes turns with small ones.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        commit_events_max: int,
        queue_events_max: int,
        observe: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._engine = engine
        self._commit_events_max = commit_events_max
        self._queue_events_max = queue_events_max
        self._observe = observe
        self._waiting: deque[_Waiting] = deque()
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "threadline-writer")
        self.queued = 0
        """Events that wait for their commit or are in it."""

    async def record(self, events: Sequence[Event]) -> list[Receipt]:
        """The receipts of these events, once all of them are durable. Raises `Unavailable` when too many wait."""
        if not events:
            return []
        if self.queued and self.queued + len(events) > self._queue_events_max:
            raise NotNow(f"{self.queued} events wait to be written; send these again in a moment")
        waiting = _Waiting(events, asyncio.get_running_loop().create_future())
        self.queued += len(events)
        self._waiting.append(waiting)
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        try:
            return await waiting.future
        finally:
            self.queued -= len(events)

    async def run(self, work: Callable[[], T]) -> T:
        """Run other work that writes in the writer's thread, between two groups."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Wait until everything that was taken is committed, then end the thread."""
        while self._task is not None:
            await asyncio.wait([self._task])
        self._thread.shutdown()

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._commit(self._take())
        finally:
            # Between the look at the queue and this line nothing else runs, so no request is left without a task.
            self._task = None

    def _take(self) -> list[_Piece]:
        room = self._commit_events_max
        pieces: list[_Piece] = []
        while room and self._waiting:
            waiting = self._waiting.popleft()
            if waiting.future.done():
                continue
            part = waiting.events[waiting.taken : waiting.taken + room]
            waiting.taken += len(part)
            room -= len(part)
            pieces.append((waiting, part))
            if waiting.taken < len(waiting.events):
                self._waiting.append(waiting)
        return pieces

    async def _commit(self, pieces: list[_Piece]) -> None:
        try:
            receipts = await self.run(lambda: self._record([event for _, part in pieces for event in part]))
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
            if len(waiting.receipts) == len(waiting.events) and not waiting.future.done():
                waiting.future.set_result(waiting.receipts)

    async def _commit_singly(self, pieces: list[_Piece], error: Exception) -> None:
        if len(pieces) == 1:
            _fail(pieces, error)
            return
        for piece in pieces:
            await self._commit([piece])

    def _record(self, events: list[Event]) -> list[Receipt]:
        began = time.perf_counter()
        receipts = self._engine.record(events)
        self._observe(time.perf_counter() - began)
        return receipts


def _fail(pieces: list[_Piece], error: Exception) -> None:
    for waiting, _ in pieces:
        if not waiting.future.done():
            waiting.future.set_exception(error)
