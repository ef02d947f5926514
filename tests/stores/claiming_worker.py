"""Processes that claim effects and send them, one after the other, each killed with -9 at a step that its seed draws.

``python -m tests.stores.claiming_worker STORE SINK NAME SEED KILLS``. What is sent is a line in a file: that survives
the end of a process as a mail does. After so many kills, a last process works until nothing is left.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.preparing import one_by_one
from threadline.app import composition
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.scheduled import OUTBOX
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Effect, Policy, Wish
from threadline.kernel.preparation import Preparation, Prepared
from threadline.kernel.sender import Outcome, Queue
from threadline.kernel.store import Batch, Refusal, Store, scan_pages
from threadline.kernel.time import system_clock
from threadline.settings import load

SENT = "letter_sent"
LEASE_SECONDS = 0.15
"""Short: who takes over waits for it, and it is lost while letters are sent, which must do no harm."""
STEPS_MAX = 40
SILENCE_SECONDS_MAX = 120.0
"""After which a server that does not answer is gone."""


class Fate:
    """When this process dies."""

    def __init__(self, steps: int | None) -> None:
        self._left = steps

    def step(self) -> None:
        """One more step; at the last one it is dead."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Mortal:
    """A store whose process may die right before or right after a commit."""

    def __init__(self, store: Store, fate: Fate) -> None:
        self._store = store
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        self._fate.step()
        refusals = self._store.commit(batches)
        self._fate.step()
        return refusals


class Sink:
    """A sender that may die before the letter has left, or after."""

    kind = "letter"

    def __init__(self, file: Path, fate: Fate) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._fate = fate

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        self._fate.step()
        os.write(self._file, f"{effect_id} {effect.data['key']}\n".encode())
        self._fate.step()
        return Outcome(type=SENT)


def react(recorded: Recorded, view: Any) -> Sequence[Wish]:
    return [Effect(kind="letter", key="letter", queue="letters", data=recorded.event.properties)]


def prepare(engine: Any, view: Any, one: Any) -> Prepared:
    return Prepared(data=one.effect.data, claims=(one.effect.data["key"],), done=Outcome(type=SENT))


def engine_on(store: Any) -> Engine:
    people = discover("threadline.capabilities.profile.people.projection", definitions=None)
    policy = Policy(name="clerk", handles=frozenset({"write"}), react=react, emits=frozenset())
    queue = Queue("letters", at_once=3, claims=True)
    return Engine(
        store,
        Catalogue(
            [
                *people,
                policy,
                queue,
                Preparation("letter", one_by_one(prepare)),
            ],
            rules(),
        ),
        system_clock,
    )


def work(url: str, sink: Path, name: str, fate: Fate) -> None:
    store = Mortal(composition().open_store(load({"store": url}), False), fate)
    engine = engine_on(store)
    sender = Sink(sink, fate)
    dispatcher = Dispatcher(engine, {"letter": sender}, f"{name} {os.getpid()}", lease_seconds=LEASE_SECONDS, page=9)
    while next(scan_pages(store, OUTBOX), None) is not None:
        try:
            settled = dispatcher.run_once()
        except Unavailable:
            settled = 0
        if not settled:
            time.sleep(0.02)


def work_on(url: str, sink: Path, name: str, steps: int | None) -> None:
    """Work until nothing is left. On a busy machine a server may not answer for a while: then it begins again."""
    fate, until = Fate(steps), time.monotonic() + SILENCE_SECONDS_MAX
    while True:
        try:
            return work(url, sink, name, fate)
        except Unavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def main(url: str, sink: Path, name: str, seed: int, kills: int) -> None:
    draw = Random(seed)
    for number in range(kills + 1):
        steps = draw.randrange(1, STEPS_MAX) if number < kills else None
        run_and_kill(number, partial(work_on, url, sink, name, steps))


def run_and_kill(number: int, work: Callable[[], None]) -> None:
    """Work in a process of its own, which ends by itself or by its fate."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 — whatever it is, what ends a process must be seen
            traceback.print_exc()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert died or os.waitstatus_to_exitcode(status) == 0, f"process {number} ended with {status}"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
