"""A process that tells a history to a DynamoDB store over a bad network until it is done, or killed.

Each line of standard input starts a child, which answers with its process id, with each key that it has an answer for,
and at last with ``gone``.
"""

from __future__ import annotations

import os
import sys
from random import Random

from tests.laws import staging
from tests.laws.ingest import history, say
from tests.stores.dynamodb_faults import FaultyClient
from threadline.kernel.time import SECOND, system_clock
from threadline.stores.dynamodb.address import parse
from threadline.stores.dynamodb.store import DynamoStore
from threadline.testing import scenarios

CALL_EVENTS_MAX = 8
CLOCK_OFF_MAX = 3 * SECOND
"""Machines' clocks differ, and nothing may depend on it."""
EXPIRY_SECONDS = 1.5


def ingest(url: str, seed: int, people: int, count: int, chance: float) -> None:
    random = Random(os.getpid())
    off = random.randint(-CLOCK_OFF_MAX, CLOCK_OFF_MAX)
    client = FaultyClient(parse(url), Random(os.getpid() + 1), chance)
    store = DynamoStore(url, lambda: system_clock() + off, client=client, expiry_seconds=EXPIRY_SECONDS)
    on = staging.engine(store)
    told = history(seed, people, count)
    start = random.randrange(len(told))
    for call in scenarios.batched(random, [*told[start:], *told[:start]], CALL_EVENTS_MAX):
        for event, receipt in zip(call, on.recorder.record(call), strict=True):
            assert receipt.status in ("accepted", "duplicate"), receipt
            say(f"ack {event.key}")
    store.close()


def main() -> None:
    for line in sys.stdin:
        url, *numbers, chance = line.split()
        seed, people, count = map(int, numbers)
        history(seed, people, count)  # before the fork, so that a child is at work at once
        pid = os.fork()
        if pid == 0:
            say(f"pid {os.getpid()}")
            ingest(url, seed, people, count, float(chance))
            say("done")
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        say(f"gone {status}")


if __name__ == "__main__":
    main()
