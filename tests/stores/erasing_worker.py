"""A process that erases events of a store: it starts a child for every line of its input, which may be killed.

The line is a store and a number to begin at. The child answers with its process id, with each number up to which it has
erased, with ``purged`` and at last with ``gone``.
"""

from __future__ import annotations

import os
import sys

from tests.laws.ingest import say
from threadline.kernel.store import Store
from threadline.kernel.time import system_clock
from threadline.stores.dynamodb.store import DynamoStore
from threadline.stores.postgres.store import PostgresStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import entry

EVENTS = 480
CHUNK = 20


def is_to_go(number: int) -> bool:
    """Whether the event of this number is to be erased: some of a page, all of another, none of a third."""
    return number % 3 == 0 or number // 50 % 4 == 1


def opened(place: str) -> Store:
    """The store that a path or a URL names."""
    if place.startswith("dynamodb"):
        return DynamoStore(place, system_clock, expiry_seconds=1.5)
    return PostgresStore(place) if place.startswith("postgres") else SqliteStore(place, tail_entries_max=100)


def work(place: str, first: int) -> None:
    store = opened(place)
    for start in range(first, EVENTS + 1, CHUNK):
        store.erase([entry(number).id for number in range(start, start + CHUNK) if is_to_go(number)])
        say(f"erased {start + CHUNK}")
    store.purge()
    say("purged")
    store.close()


def main() -> None:
    for line in sys.stdin:
        place, first = line.split()
        pid = os.fork()
        if pid == 0:
            say(f"pid {os.getpid()}")
            work(place, int(first))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        say(f"gone {status}")


if __name__ == "__main__":
    main()
