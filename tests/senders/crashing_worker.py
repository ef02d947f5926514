"""A process that calls webhooks and is killed between the answer and the commit, as often as it is told to."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
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


def main(store: str, crash: bool) -> None:
    settings = load({"store": store})
    engine = open_engine(None, settings)
    dispatcher: Any = open_dispatcher(engine, settings)
    dispatcher.lease_seconds = 1.0
    if crash:
        senders: Mapping[str, Sender] = {kind: Crashing(each) for kind, each in dispatcher.senders.items()}
        dispatcher.senders = senders
    stopping = threading.Event()
    threading.Timer(0.7, stopping.set).start()
    dispatcher.run(stopping, idle_seconds=0.05)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "crash")
