"""A herd of processes on one PostgreSQL, each of which may be killed at any instant: it forks one for every order.

An order is a line: ``ingest <number> <first call>``, ``dispatch <number>`` or ``send <number>``. The children answer
for themselves with ``ack <number> <call>`` and ``done <number>``, the herd with ``pid <number> <pid>`` and
``gone <number> <status>``.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import msgspec
import psycopg

from tests.laws import staging
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Event, Recorded
from threadline.kernel.policy import Effect, Policy, Wish
from threadline.kernel.sender import Outcome
from threadline.kernel.time import DAY, system_clock
from threadline.stores.postgres.store import PostgresStore
from threadline.testing.scenarios import batched
from threadline.testing.world import World

CALL_EVENTS_MAX = 25
LEASE_SECONDS = 1.5
SENDING_LEASE_SECONDS = 4.0
"""Who lives must not lose it, however busy the machine: what they send would be sent by another one as well."""
PATIENCE = 300
"""Tries of a fifth of a second: longer than any server takes to come back."""


class Task(msgspec.Struct, frozen=True):
    """What a herd works on; the same for all of it."""

    url: str
    seed: int
    people: int
    events: int
    workers: int
    shift: int
    """Microseconds from the machine's clock to the world's."""

    def world(self) -> World:
        """An hour of traffic."""
        return World(
            self.seed, people=self.people, days=1, history=24 * self.events, late=0.1, late_days_max=3, duplicates=0.1
        )

    def clock(self) -> int:
        """The time in the world."""
        return system_clock() + self.shift


@cache
def told(task: Task) -> list[Event]:
    return list(task.world().events(task.events))


def calls(task: Task, number: int) -> list[list[Event]]:
    """What one worker has to tell: every so many events are its own, whoever they are about."""
    return batched(Random(f"{task.seed} {number}"), told(task)[number :: task.workers], CALL_EVENTS_MAX)


def say(line: str) -> None:
    # One write of less than a pipe's buffer is never torn apart, whoever writes beside or dies after it.
    os.write(1, f"{line}\n".encode())


# --- what the children do -----------------------------------------------------------------------------


def ingest(task: Task, number: int, first: int) -> None:
    on = staging.engine(opened(task), task.clock)
    mine = calls(task, number)
    for place in range(first, len(mine)):
        for event, receipt in zip(mine[place], patiently(on, mine[place]), strict=True):
            assert receipt.status in ("accepted", "duplicate"), (event, receipt)
        say(f"ack {number} {place}")
    say(f"done {number}")


def opened(task: Task) -> PostgresStore:
    """A store that is opened at once says so if it cannot be reached; whoever started it tries again."""
    for _ in range(PATIENCE):
        try:
            return PostgresStore(task.url)
        except Unavailable:
            time.sleep(0.2)
    raise AssertionError("the store stayed away for too long")


def patiently(on: Engine, call: Sequence[Event]) -> list[Any]:
    """As a client does that was told 503."""
    for _ in range(PATIENCE):
        try:
            return on.recorder.record(call)
        except Unavailable:
            time.sleep(0.2)
    raise AssertionError("the store stayed away for too long")


def dispatch(task: Task, number: int) -> None:
    on = staging.engine(opened(task), task.clock)
    dispatcher = Dispatcher(on, {}, f"worker {number} {os.getpid()}", lease_seconds=LEASE_SECONDS, page=10)
    while True:
        if not work(dispatcher):
            time.sleep(0.05)


def work(dispatcher: Dispatcher) -> int:
    try:
        return dispatcher.run_once()
    except Unavailable:
        return 0


def react(recorded: Recorded, states: dict[str, Any]) -> Sequence[Wish]:
    return [Effect(kind="box", key="mail")]


MAIL = Policy(name="mail", handles=frozenset({"write"}), react=react)


class Box:
    """A sender that takes its time, and notes each sending for good in a table: as a provider would count mails."""

    kind = "box"

    def __init__(self, url: str) -> None:
        self._db = psycopg.connect(url.partition("&schema=")[0], autocommit=True)

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Note who sent what."""
        self._db.execute("INSERT INTO box (effect, pid) VALUES (%s, %s)", (effect_id, os.getpid()))
        time.sleep(0.01)
        return Outcome(type="mail_sent")


def send(task: Task, number: int) -> None:
    on = staging.engine(opened(task), task.clock, [MAIL])
    sender = Box(task.url)
    name = f"worker {number} {os.getpid()}"
    dispatcher = Dispatcher(on, {"box": sender}, name, lease_seconds=SENDING_LEASE_SECONDS, page=5)
    while True:
        if not work(dispatcher):
            time.sleep(0.02)


# --- the herd -----------------------------------------------------------------------------------------


def child(task: Task, order: list[str]) -> None:
    what, number = order[0], int(order[1])
    try:
        if what == "ingest":
            ingest(task, number, int(order[2]))
        elif what == "dispatch":
            dispatch(task, number)
        else:
            send(task, number)
    except BaseException as error:
        say(f"failed {number} {type(error).__name__}: {error}".replace("\n", " ")[:2_000])
        raise
    finally:
        os._exit(0)


def main() -> None:
    task = msgspec.json.decode(sys.argv[1], type=Task)
    told(task)  # before the first fork, so that a child is at work at once
    alive: dict[int, str] = {}
    say("ready")
    while True:
        if select.select([0], [], [], 0.01)[0]:
            line = sys.stdin.readline()
            if not line:
                break
            order = line.split()
            pid = os.fork()
            if pid == 0:
                child(task, order)
            alive[pid] = order[1]
            say(f"pid {order[1]} {pid}")
        while alive and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            say(f"gone {alive.pop(ended[0])} {ended[1]}")
    for pid in alive:
        os.kill(pid, 9)


def shift_to(at: int) -> int:
    """What brings the machine's clock to this instant now."""
    return at - system_clock()


WEEK_LATER = 8 * DAY
"""By then everything that waits for a week is due."""


if __name__ == "__main__":
    main()
