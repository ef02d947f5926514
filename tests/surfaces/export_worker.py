"""A process that works on the jobs of a store, with a place for exports, until it is killed."""

from __future__ import annotations

import os
import sys

from threadline.app import open_engine
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.settings import load

LEASE_SECONDS = 0.5
PAGE = 20


def main(store: str, exports: str) -> None:
    engine = open_engine(None, load({"store": store, "exports": exports}))
    job_worker.JOB_PAGE = PAGE
    worker = Dispatcher(engine, {}, f"worker {os.getpid()}", lease_seconds=LEASE_SECONDS)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        worker.run_once()


if __name__ == "__main__":
    main(*sys.argv[1:])
