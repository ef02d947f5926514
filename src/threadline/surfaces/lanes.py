"""Lanes: each class of work has threads of its own, so that none of it waits for another class that takes long."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, TypeVar

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.operation import Work

T = TypeVar("T")

LaneName = Work | Literal["page", "public", "sign_in"]
"""The classes of operations; what makes many calls, as a page of the console, a document of GraphQL or a tool of an
agent; what anybody may ask for; and the hashing of passwords."""
_LEADING_ON = frozenset({"read", "page"})
"""Lanes whose work may come to a call of a longer class, and then goes on in the lane of that one."""


class Bound(NamedTuple):
    """How much of a lane's work there may be."""

    threads: int
    """Calls that run at once."""
    waiting_max: int
    """Calls that wait for a thread; further ones are refused at once."""


class Lane:
    """One class of work. Calls run in the order in which they come. Thread-safe."""

    def __init__(
        self, name: LaneName, bound: Bound, threads: Executor, refuse: Callable[[str], ThreadlineError]
    ) -> None:
        self.name = name
        self.bound = bound
        self.beside: Mapping[LaneName, Lane] = {}
        """All lanes of the same server."""
        self._threads = threads
        self._refuse = refuse
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[_Call | threading.Event] = deque()
        """An event is a thread that waits to go on here."""

    def submit(self, work: Callable[[], T], *, is_begun: bool = False) -> Future[T]:
        """The result, to come. Beyond the bound it raises what ``refuse`` gives; what ``is_begun`` may always wait."""
        call = _Call(work, Future())
        with self._lock:
            starts = self._takes_thread(is_begun)
            if not starts:
                self._waiting.append(call)
        if starts:
            self.start(call)
        return call.future

    def take_over(self, before: Lane) -> None:
        """Let this thread go on here instead of in the lane before; it waits like a call, or is refused like one."""
        entered = threading.Event()
        with self._lock:
            if self._takes_thread():
                entered.set()
            else:
                self._waiting.append(entered)
        if (following := before.following()) is not None:
            before.start(following)
        entered.wait()

    def start(self, call: _Call) -> None:
        """Serve a call, and what waits behind it, with a thread that was taken for it."""
        try:
            self._threads.submit(self._serve, call)
        except RuntimeError as error:  # the server has ended meanwhile
            call.future.set_exception(error)

    def following(self) -> _Call | None:
        """What a thread of this lane does next; None: it has been given up, or to a thread that waited to go on."""
        with self._lock:
            if not self._waiting:
                self._running -= 1
                return None
            first = self._waiting.popleft()
        if isinstance(first, _Call):
            return first
        first.set()
        return None

    def _takes_thread(self, is_begun: bool = False) -> bool:
        """Whether there is one, which then is taken; without one the call has to wait."""
        if self._running < self.bound.threads:
            self._running += 1
            return True
        if len(self._waiting) >= self.bound.waiting_max and not is_begun:
            raise self._refuse(f"{self.name} calls")
        return False

    def _serve(self, call: _Call) -> None:
        following: _Call | None = call
        _HERE.lane = self
        while following is not None:
            following.run()
            following = _HERE.lane.following()  # of the lane in which the call has ended
        _HERE.lane = None


class _Call:
    """Work, and where its result goes."""

    def __init__(self, work: Callable[[], Any], future: Future[Any]) -> None:
        self._work = work
        self.future = future

    def run(self) -> None:
        """Do it, if its result is still wanted."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001 — it is for whoever waits for the result
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class _Here(threading.local):
    lane: Lane | None = None


_HERE = _Here()


def go_on_as(work: Work) -> None:
    """Go on in the lane of a longer class where this thread's lane is one of short calls, so that it does not block
    them. Without lanes, as on the command line, nothing happens. Raises the refusal of a lane that is full."""
    lane = _HERE.lane
    if lane is not None and work != "read" and lane.name in _LEADING_ON:
        lane.beside[work].take_over(lane)
        _HERE.lane = lane.beside[work]


class Lanes:
    """The lanes of a server."""

    def __init__(self, bounds: Mapping[LaneName, Bound], refuse: Callable[[str], ThreadlineError]) -> None:
        # So many that each call that runs, and each that waits to go on in another lane, has one.
        self._threads = ThreadPoolExecutor(sum(map(sum, bounds.values())), "threadline-lane")
        self.named = {name: Lane(name, bound, self._threads, refuse) for name, bound in bounds.items()}
        for lane in self.named.values():
            lane.beside = self.named

    async def run(self, lane: LaneName, work: Callable[[], T], *, is_begun: bool = False) -> T:
        """The result of work in a lane; see `Lane.submit`."""
        return await asyncio.wrap_future(self.named[lane].submit(work, is_begun=is_begun))

    def shutdown(self) -> None:
        """Wait for what runs and waits."""
        self._threads.shutdown()
