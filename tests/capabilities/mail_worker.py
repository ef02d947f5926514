"""A process that sends what is due, and that the system kills as soon as a mail with a certain word is filled in.

``python -m tests.capabilities.mail_worker STORE DEFINITIONS``, in place of one that dies with the process that fills in
its mails: of memory that no ceiling of one process bounds, or of a machine that gives up.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from threadline.app import open_dispatcher, open_engine
from threadline.settings import load

DEADLY = "deadly"


class Deadly:
    """Confined work that takes this whole process with it."""

    def run(self, work: Callable[[Any], Any], inputs: Sequence[Any]) -> Sequence[Any]:
        if any(DEADLY in repr(value.values) for value in inputs):
            os.kill(os.getpid(), signal.SIGKILL)
        return [work(value) for value in inputs]

    def close(self) -> None:
        pass


def main(store: str, definitions: str) -> None:
    engine = open_engine(store, definitions=definitions)
    engine.confined = Deadly()
    dispatcher = open_dispatcher(engine, load({"store": store, "definitions": definitions}))
    while dispatcher.run_once():
        pass
    dispatcher.let_go()
    engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
