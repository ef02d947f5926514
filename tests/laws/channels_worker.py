"""Processes that send the messages of a channel, one after the other, each killed with -9 at a step that is drawn.

``python -m tests.laws.channels_worker CHANNEL STORE SINK SEED KILLS``. What has left is a line in a file, which
survives the end of a process as a message does. After so many kills, a last process works until nothing is left.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from random import Random

from tests.laws.channels_stage import catalogue, channels
from tests.stores.claiming_worker import LEASE_SECONDS, STEPS_MAX, Fate, Mortal, run_and_kill
from threadline.app import composition
from threadline.capabilities.reach.messages.ledger import Entries
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.scheduled import OUTBOX
from threadline.kernel.policy import Effect
from threadline.kernel.sender import Outcome
from threadline.kernel.store import Store, scan_pages
from threadline.kernel.time import system_clock
from threadline.settings import load


class Post:
    """A sender that may die before the message has left, or after."""

    def __init__(self, entries: Entries, file: Path, fate: Fate) -> None:
        self.kind = entries.channel
        self._sent = entries.sent
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._fate = fate

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Let it leave."""
        record = effect.data["record"]
        self._fate.step()
        os.write(self._file, f"{record['occurrence']} {effect_id}\n".encode())
        self._fate.step()
        return Outcome(type=self._sent, properties=record)


def engine_on(channel: str, store: Store) -> Engine:
    """An engine with this channel."""
    engine = Engine(store, catalogue(channel), system_clock)
    engine.public_address.use_local("http://localhost:8787")
    return engine


def opened(url: str) -> Store:
    """The store."""
    return composition().open_store(load({"store": url}), False)


def work(channel: str, url: str, sink: Path, steps: int | None) -> None:
    """Send until nothing is left, or until the last step."""
    fate = Fate(steps)
    store = Mortal(opened(url), fate)
    engine = engine_on(channel, store)  # type: ignore[arg-type]
    senders = {channel: Post(channels()[channel], sink, fate)}
    dispatcher = Dispatcher(engine, senders, f"{os.getpid()}", lease_seconds=LEASE_SECONDS, page=9)
    while next(scan_pages(store, OUTBOX), None) is not None:  # type: ignore[arg-type]
        if not dispatcher.run_once():
            time.sleep(0.02)


def main(channel: str, url: str, sink: Path, seed: int, kills: int) -> None:
    """Run and kill."""
    catalogue(channel)  # made once, for all of them
    draw = Random(seed)
    for number in range(kills + 1):
        steps = draw.randrange(1, STEPS_MAX) if number < kills else None
        run_and_kill(number, partial(work, channel, url, sink, steps))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
