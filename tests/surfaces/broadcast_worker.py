"""A process that works on a store until it is killed; each mail that it sends is a line of a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from threadline.app import open_engine
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.policy import Effect
from threadline.kernel.sender import Outcome

LEASE_SECONDS = 0.5
PAGE = 20


class Sink:
    """Takes mails as a provider does: once it has one, nobody takes it back."""

    kind = "mail"

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Note the address."""
        os.write(self._file, f"{effect.data['to']}\n".encode())
        return Outcome(type="mail_sent", properties=effect.data["record"])


def main(store: str, mails: str) -> None:
    engine = open_engine(store)
    job_worker.JOB_PAGE = PAGE
    name = f"worker {os.getpid()}"
    worker = Dispatcher(engine, {"mail": Sink(Path(mails))}, name, lease_seconds=LEASE_SECONDS, page=PAGE)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        worker.run_once()


if __name__ == "__main__":
    main(*sys.argv[1:])
