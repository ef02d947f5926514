"""One simulation: what a seed makes of engines, clients, operators, the world outside and their clocks."""

from __future__ import annotations

import logging
import random as global_random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from random import Random
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

from tests.simulator import reckoner
from tests.simulator.clients import Clients
from tests.simulator.definitions import VERSIONS, catalogue
from tests.simulator.faults import Crash, Faults, Port, Trace
from tests.simulator.operators import Operators
from tests.simulator.outside import Line, Outside
from tests.simulator.schedule import Lock, Schedule
from threadline.engine import credentials, damage, shared, signer
from threadline.engine.delivery import job_worker, outbox
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.leases import Leases
from threadline.engine.delivery.unknown import UNKNOWN
from threadline.engine.engine import Engine
from threadline.engine.erasure import certificates
from threadline.engine.jobs.jobs import JOB_DUE
from threadline.engine.maintenance.dump import dump
from threadline.engine.maintenance.scrub import SCRUB, Scrub
from threadline.engine.reading import ranks
from threadline.engine.recording import recorder
from threadline.engine.scheduled import OUTBOX, PARKED, POSTPONED, TIMER, due_of
from threadline.kernel.erasure import ERASURE_OPEN
from threadline.kernel.errors import BeingErased, ThreadlineError, Unavailable
from threadline.kernel.event import Event
from threadline.kernel.store import ERASED_DIGEST, FeedEntry, Key, feed_pages, scan_pages
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND
from threadline.stores.memory import MemoryStore
from threadline.testing.scenarios import NOW

EVENTS = 240
ACTIONS = 220
"""What the processes of a simulation do, all together."""
QUIET_ROUNDS = 1_500
ROUNDS_MAX = 300
QUIET_TIME = 8 * DAY
SCRUB_DAYS = 0.001
LATE_MAX = 15 * MINUTE
"""Longer than any lease, rest of a destination, and rest of an item."""
SENDS = ("hook", "letter", "mail", "webhook", "box")


Do = Callable[["Life"], None]


class Result(NamedTuple):
    """What came of a seed."""

    events: int
    """Events that were answered, again and again too."""
    recorded: int
    crashes: int
    faults: dict[str, int]
    problems: list[str]
    trace: str


class World:
    """What the processes of a simulation share."""

    def __init__(self, seed: int, actions: int, without: Sequence[str] = ()) -> None:
        draw = Random(seed)
        self.random = draw
        self.left = {Life.serve: actions // 2, Life.work: actions - actions // 2}
        """How much there is to do: a round of the dispatcher takes much longer than a call."""
        self.schedule = Schedule(Random(draw.random()), draw.choice((0.02, 0.1, 0.3)))
        self.faults = Faults(Random(draw.random()), without)
        self.trace = Trace()
        self.store = MemoryStore()
        self.clients = Clients(Random(draw.random()), EVENTS, self.is_erased)
        self.outside = Outside(Random(draw.random()))
        self.operators = Operators(Random(draw.random()), self.outside, self.clients)
        self.now = NOW + DAY
        self.version = 0
        self.crashes = 0
        self.errors: list[str] = []

    def is_erased(self, id: str) -> bool:
        """Whether of an event of this id nothing but the id is left."""
        return self.store.seen([id]).get(id) == ERASED_DIGEST

    @property
    def recorded(self) -> int:
        """How many events the log has."""
        return sum(1 for _ in feed_pages(self.store))

    def pass_time(self) -> None:
        """A little of it, and seldom a lot, or backwards."""
        choice = self.random.random()
        if choice < 0.9:
            self.now += self.random.randrange(2 * SECOND)
        elif choice < 0.98:
            self.now += self.random.randrange(2 * HOUR)
        elif self.faults.happens("leap"):
            self.now += self.random.choice((-3 * DAY, -HOUR, -MINUTE, 3 * DAY))


class Life:
    """One life of a process: an engine and a dispatcher, with nothing in memory of the life before."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._skew = world.random.choice((-DAY, -MINUTE, MINUTE, 3 * DAY)) if world.faults.happens("skew") else 0
        self.port = Port(world.store, name, world.schedule, world.faults, world.trace)
        self.engine = Engine(self.port, catalogue(world.version), self.clock)
        self.engine.public_address.use_local("https://shop.example")
        senders = {kind: Line(kind, world.outside, self.port) for kind in SENDS}
        self.dispatcher = Dispatcher(self.engine, senders, name)
        self._scrub = Scrub(self.port, self.engine.catalogue, self.engine.damage, self.clock, SCRUB_DAYS)
        self._leases = Leases(self.port, self.clock, name, 60.0)

    def clock(self) -> int:
        """Its clock, which never stands still."""
        self._world.now += 1
        return self._world.now + self._skew

    def serve(self) -> None:
        """What a server does in one thread."""
        choice = self._world.random.random()
        if choice < 0.8:
            self.record(self._world.clients.next_call(self._world.now))
        elif choice < 0.95:
            self._read()
        elif choice < 0.98:
            self.engine.maintenance.advance("", 3)
        elif self._world.random.random() < 0.3:
            self._world.version = (self._world.version + 1) % len(VERSIONS)

    def work(self) -> None:
        """What it does in another one."""
        choice = self._world.random.random()
        if choice < 0.6:
            self.dispatcher.run_once()
        elif choice < 0.7:
            if self._scrub.is_due() and (fence := self._leases.acquire(SCRUB)) is not None:
                self._scrub.step(fence)
        else:
            self._world.operators.act(self.engine)

    def record(self, call: list[Event]) -> None:
        """Send a call here; without an answer it is sent again, to whomever."""
        clients = self._world.clients
        clients.sending(call)
        try:
            receipts = self.engine.recorder.record(call)
        except BaseException:
            clients.unanswered(call)
            raise
        finally:
            clients.returned(call)
        self._world.trace.note(*(receipt.status for receipt in receipts))
        clients.answered(call, receipts)

    def _read(self) -> None:
        """What was acknowledged, by whichever process, is seen by this one at once."""
        known = self._world.clients.acknowledged
        if known:
            id = self._world.random.choice(list(known))
            event = known[id]
            recorded = self.engine.log.event(event.workspace, id)
            person = self.engine.reader.by_thread(recorded.thread)
            if person is None and self.engine.erasures.unfinished():
                return
            assert person is not None, f"{event.key} is acknowledged, and nobody has its thread"
            assert person.heads[recorded.thread] >= recorded.sequence, f"{event.key} is beyond the end of its thread"
            self.engine.reader.views(person, self.engine.now())


class Process:
    """One process, which dies and is started again, and who follows the feed through it."""

    def __init__(self, world: World, number: int) -> None:
        self.followed: list[FeedEntry] = []
        self._world = world
        self._number = number
        self._lives = 0
        self._life: Life | None = None
        self._is_opening = False

    def threads(self) -> list[Callable[[], None]]:
        """What its threads do."""
        return [lambda: self._thread(Life.serve), lambda: self._thread(Life.work)]

    def open(self) -> Life:
        """Begin a new life."""
        self._lives += 1
        self._life = Life(self._world, f"p{self._number}.{self._lives}")
        return self._life

    def follow(self, life: Life) -> None:
        """Read on in the feed."""
        cursor = self.followed[-1].cursor if self.followed else ""
        self.followed += life.engine.log.feed(cursor, 50)

    def _thread(self, do: Do) -> None:
        world = self._world
        while world.left[do] > 0:
            life = self._life
            try:
                if life is not None:
                    world.left[do] -= 1
                    world.pass_time()
                    self._act(life, do)
                elif self._is_opening:
                    world.schedule.wait()
                else:
                    self._reopen()
            except Crash:
                if self._life is life:
                    world.crashes += 1
                    self._life = None

    def _reopen(self) -> None:
        self._is_opening = True
        try:
            self.open()
        except Unavailable:
            self._world.trace.note("could not be opened")
        finally:
            self._is_opening = False

    def _act(self, life: Life, do: Do) -> None:
        world = self._world
        try:
            if do is Life.work and world.random.random() < 0.15:
                self.follow(life)
            else:
                do(life)
        except Unavailable:
            world.trace.note("unavailable")
        except ThreadlineError as error:
            world.trace.note(error.code)
            if error.status >= 500 and error.code != "outcome_unknown":
                world.errors.append(f"{type(error).__name__}: {error}")


class _Logged(logging.Handler):
    """Whatever is logged as an error is one."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self.world = world

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        text = record.getMessage()
        if "cannot fire" in text and self.world.store.scan(ERASURE_OPEN, limit=1):
            return  # a person who is being erased has timers until their turn comes
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self.world.errors.append(text)


class _Serial:
    """In place of a pool of threads: one after the other, so that a seed decides the order."""

    def __init__(self, *_: object) -> None:
        self.map = map

    def shutdown(self) -> None:
        """Nothing runs."""


@contextmanager
def _deterministic(seed: int, world: World) -> Iterator[None]:
    """Nothing draws from anything but the seed, sleeps, or starts a thread."""
    tokens = Random(seed)

    class Secrets:
        token_hex = staticmethod(lambda size: tokens.randbytes(size).hex())
        token_bytes = staticmethod(tokens.randbytes)

    class Time:
        sleep = staticmethod(lambda seconds: world.schedule.sleep(1))

    threads = SimpleNamespace(
        Lock=lambda: Lock(world.schedule),
        Thread=lambda target, **_: SimpleNamespace(start=lambda: world.schedule.start(target)),
    )
    global_random.seed(seed)
    with ExitStack() as stack:
        for module in (credentials, damage, ranks, recorder, shared, signer):
            stack.enter_context(patch.object(module, "threading", threads))
        for module in (certificates, outbox, signer):
            stack.enter_context(patch.object(module, "secrets", Secrets))
        stack.enter_context(patch.object(outbox, "ThreadPoolExecutor", _Serial))
        stack.enter_context(patch.object(recorder, "time", Time))
        stack.enter_context(patch.object(job_worker, "JOB_PAGE", 3))
        yield


def run(seed: int, actions: int = ACTIONS, without: Sequence[str] = ()) -> Result:
    """Simulate a seed, and say what came of it."""
    world = World(seed, actions, without)
    handler = _Logged(world)
    logger = logging.getLogger("threadline")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        with _deterministic(seed, world):
            processes = [Process(world, number) for number in range(world.random.choice((1, 2, 3)))]
            try:
                world.schedule.run([thread for process in processes for thread in process.threads()])
                problems = _end(world, processes)
            except (AssertionError, ThreadlineError) as error:
                problems = [f"at point {world.schedule.points}: {type(error).__name__}: {error}"]
    finally:
        logger.removeHandler(handler)
    return Result(
        world.clients.counts,
        world.recorded,
        world.crashes,
        dict(world.faults.counts),
        [*problems, *world.errors],
        world.trace.digest(),
    )


def _end(world: World, processes: Sequence[Process]) -> list[str]:
    """Faults stop, everything becomes quiet, and is reckoned."""
    world.faults.are_over = True
    world.outside.is_well = True
    lives = [process.open() for process in processes]
    late = list(_quieten(world, lives))
    on = lives[-1].engine
    cursor, rounds = "", 0
    while on.maintenance.stale() and rounds < 1_000:
        cursor, rounds = on.maintenance.advance(cursor, 5).next, rounds + 1
    for process, life in zip(processes, lives, strict=True):
        while len(process.followed) < world.recorded:
            process.follow(life)
    found = late + list(reckoner.problems(on, world.clients, world.outside, [each.followed for each in processes]))
    world.trace.note(*dump(on.store, on.catalogue))
    return found


def _quieten(world: World, lives: Sequence[Life]) -> Iterator[str]:
    """Let time pass from one thing that is due to the next, until nothing is. What waits for longer than any lease or
    rest is a problem."""
    end = world.now + QUIET_TIME
    first_seen: dict[Key, int] = {}
    late: set[Key] = set()
    for _ in range(QUIET_ROUNDS):
        for call in world.clients.rest():
            with suppress(BeingErased):
                lives[0].record(call)
        for life in lives:
            rounds = 0
            while life.dispatcher.run_once():
                rounds += 1
                assert rounds < ROUNDS_MAX, "the dispatcher comes to no end"
                world.now += SECOND // 10  # the letters have a pace
        with suppress(BeingErased):
            world.operators.tidy(lives[0].engine)
        waiting = [item for table in (OUTBOX, TIMER, JOB_DUE) for item in scan_pages(world.store, table)]
        others = [
            item for table in (PARKED, POSTPONED, UNKNOWN, ERASURE_OPEN) for item in scan_pages(world.store, table)
        ]
        dues = [due_of(item) for item in waiting]
        overdue = [item.key for item in waiting if due_of(item) <= world.now]
        # What belongs to a person who is being erased waits for the erasure's job, which a clock may have put off.
        erasing = bool(world.store.scan(ERASURE_OPEN, limit=1))
        for key in overdue if not erasing else ():
            if world.now > first_seen.setdefault(key, world.now) + LATE_MAX and key not in late:
                late.add(key)
                yield f"{key} is due, and was not touched for {LATE_MAX // MINUTE} minutes"
        if world.clients.is_done and not others and not overdue and all(due > end for due in dues):
            return
        ahead = 0 if overdue or others else min((due for due in dues if due > world.now), default=0)
        world.now = max(world.now + (HOUR if late or erasing else MINUTE), ahead)
