"""The process that is killed: tells a history to an engine from several threads and says what was answered.

It stays alive itself and forks a child for every line it reads, so that a round costs a fork and not a start of
Python. A line is ``<path> <seed> <people> <count> <start>``; it writes ``pid <pid>``, ``ack <key>`` for every event
that was accepted or known, and ``gone`` once the child has died and all that it said has been passed on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from random import Random

from tests.laws import staging
from threadline.kernel.event import Event
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios

THREADS = 3
CALL_EVENTS_MAX = 6
WAL_PAGES_MAX = 64
"""So short that the write-ahead log is copied into the file all the time, and kills meet that as well."""


def say(line: str) -> None:
    # One write of less than a pipe's buffer is never torn apart, whoever writes beside or dies after it.
    os.write(1, f"{line}\n".encode())


@lru_cache
def history(seed: int, people: int, count: int) -> list[Event]:
    return scenarios.history(Random(seed), people, count)


def ingest(path: str, told: list[Event]) -> None:
    on = staging.engine(SqliteStore(path, wal_pages_max=WAL_PAGES_MAX), staging.ticking())
    calls = iter(scenarios.batched(Random(os.getpid()), told, CALL_EVENTS_MAX))
    lock = threading.Lock()

    def work(calls: Iterator[list[Event]]) -> None:
        while True:
            with lock:
                call = next(calls, None)
            if call is None:
                return
            for event, receipt in zip(call, on.recorder.record(call), strict=True):
                assert receipt.status in ("accepted", "duplicate"), receipt
                say(f"ack {event.key}")

    threads = [threading.Thread(target=work, args=(calls,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    for line in sys.stdin:
        path, *numbers = line.split()
        seed, people, count, start = map(int, numbers)
        told = history(seed, people, count)[start:]  # before the fork, so that a child is at work at once
        pid = os.fork()
        if pid == 0:
            say(f"pid {os.getpid()}")
            ingest(path, told)
            os._exit(0)
        os.waitpid(pid, 0)
        say("gone")


if __name__ == "__main__":
    main()
