"""Who goes on next: the processes of a simulation are threads of which exactly one runs, as the seed decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from random import Random

HANG_SECONDS = 30.0
"""By the wall; a step of the schedule takes some microseconds."""


class Stopped(BaseException):
    """The simulation has failed elsewhere; no handler of errors sees it."""


class _Fibre:
    """A simulated process: its thread, and the lock that it waits on while another one runs."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.lock = threading.Lock()
        self.lock.acquire()
        self.asleep_until = 0
        self.is_done = False


class Lock:
    """In place of `threading.Lock`: whoever waits for it lets the others go on."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._is_taken = False

    def __enter__(self) -> None:
        while self._is_taken:
            self._schedule.wait()
        self._is_taken = True

    def __exit__(self, *_: object) -> None:
        self._is_taken = False


class Schedule:
    """Hands the baton from one simulated process to the next, at the points where they ask."""

    def __init__(self, random: Random, switching: float) -> None:
        self.points = 0
        """How often somebody has asked: the time of the schedule."""
        self._random = random
        self._switching = switching
        self._fibres: list[_Fibre] = []
        self._running: _Fibre | None = None
        self._main = threading.Lock()
        self._failure: BaseException | None = None

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Do all of these, a step of one and then a step of another, until all have ended; raises what one raises."""
        self._main.acquire()
        self._fibres = []
        for work in works:
            self.start(work)
        self._resume(self._next())
        points = -1
        while not self._main.acquire(timeout=HANG_SECONDS):
            assert self.points > points, "somebody waits for a lock that is no part of the schedule"
            points = self.points
        self._running = None
        if self._failure is not None:
            raise self._failure

    def point(self) -> None:
        """Somewhere another process may go on; here, with a chance that belongs to the seed."""
        self.points += 1
        if self._running is not None and self._random.random() < self._switching:
            self._hand_over()

    def sleep(self, points: int) -> None:
        """Let the others go on for so long, as if this process was paused."""
        if self._running is not None:
            self._running.asleep_until = self.points + points
            self._hand_over()

    def start(self, work: Callable[[], None]) -> None:
        """Begin something beside what runs already."""
        fibre = _Fibre(work)
        self._fibres.append(fibre)
        threading.Thread(target=self._live, args=(fibre,), daemon=True).start()

    def wait(self) -> None:
        """Let another one go on, because this one cannot."""
        assert self._running is not None, "whoever runs alone waits for ever"
        self.points += 1
        self._hand_over()

    def _hand_over(self) -> None:
        me = self._running
        assert me is not None
        chosen = self._next()
        if chosen is not me:
            self._resume(chosen)
            me.lock.acquire()
        if self._failure is not None:
            raise Stopped

    def _next(self) -> _Fibre:
        alive = [fibre for fibre in self._fibres if not fibre.is_done]
        awake = [fibre for fibre in alive if fibre.asleep_until <= self.points]
        return self._random.choice(awake) if awake else min(alive, key=lambda fibre: fibre.asleep_until)

    def _resume(self, fibre: _Fibre) -> None:
        self._running = fibre
        fibre.lock.release()

    def _live(self, fibre: _Fibre) -> None:
        fibre.lock.acquire()
        try:
            if self._failure is None:
                fibre.work()
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 — it is raised again where `run` was called
            self._failure = self._failure or error
        fibre.is_done = True
        if all(each.is_done for each in self._fibres):
            self._main.release()
        else:
            self._resume(self._next())
