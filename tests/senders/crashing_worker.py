"""A process that calls webhooks and is killed between the answer and the commit, as often as it is told to."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from threadline.app import open_dispatcher, open_engine
from threadline.kernel.policy import Effect
from threadline.kernel.sender import Outcome, Sender
from threadline.settings import load


class Crashing:
    """Sends, and is dead before anybody learns of it."""

    def __init__(self, sender: Sender) -> None:
        self.kind = sender.kind
        self._sender = sender

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        self._sender.send(effect, effect_id, person)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class Living:
    """Sends, and lets the process end a while later: long enough to send once more what should not be."""

    def __init__(self, sender: Sender, stop: Callable[[], None]) -> None:
        self.kind = sender.kind
        self._sender = sender
        self._stop = stop

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        outcome = self._sender.send(effect, effect_id, person)
        threading.Timer(0.7, self._stop).start()
        return outcome


def main(store: str, crash: bool) -> None:
    settings = load({"store": store})
    engine = open_engine(None, settings)
    dispatcher: Any = open_dispatcher(engine, settings)
    dispatcher.lease_seconds = 3_600.0  # nobody waits for the lease of a process that cannot live any more
    stopping = threading.Event()
    senders: Mapping[str, Sender] = {
        kind: Crashing(each) if crash else Living(each, stopping.set) for kind, each in dispatcher.senders.items()
    }
    dispatcher.senders = senders
    dispatcher.run(stopping, idle_seconds=0.05)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "crash")
