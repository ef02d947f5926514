"""A process that writes and reads through the cache until it is killed, and says so if it ever reads something old.

What is known to all processes is in a file of one number per key: the newest version that anybody was told of. It is
looked up before a read and raised after it. The store itself is one store for all, served by the process that started
these: ``python -m tests.stores.cache_worker <store port> <redis url> <file> <acknowledged|seen> <seed>``.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import sys
import threading
import time
from multiprocessing.managers import BaseManager
from random import Random
from typing import Any

from threadline.kernel.store import Batch, Item, Key, Put
from threadline.stores.redis.cached_store import CachedStore, redis_connections

KEYS = 5
LEASE, RETRY, TIMEOUT = 0.3, 0.2, 0.1
SECRET = b"tests"


class Serving(BaseManager):
    """Serves one store to other processes."""


Serving.register("store")


class Newest:
    """The newest version of each key that anybody was told of, shared by all processes."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR)
        self._numbers = memoryview(mmap.mmap(self._file, KEYS * 8)).cast("q")
        self._lock = threading.Lock()

    def of(self, number: int) -> int:
        return self._numbers[number]

    def note(self, number: int, version: int) -> None:
        with self._lock:
            # The kernel takes this lock back from a process that is killed.
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._numbers[number] = max(self._numbers[number], version)
            fcntl.flock(self._file, fcntl.LOCK_UN)


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def write(store: Any, newest: Newest, random: Random) -> None:
    while True:
        number = random.randrange(KEYS)
        key = Key("person", str(number))
        item: Item | None = store.get([key])[0]
        version = item.version if item is not None else 0
        if store.commit([Batch(writes=[Put(key, b"%d" % (version + 1), version)])]) == [None]:
            newest.note(number, version + 1)


def read(store: Any, newest: Newest, random: Random, what: str) -> None:
    while True:
        number = random.randrange(KEYS)
        key, known = Key("person", str(number)), newest.of(number)
        found = store.get([key])[0] if random.random() < 0.7 else (store.query("person", key.partition) or [None])[0]
        version = found.version if found is not None else 0
        if version < known or (found is not None and found.value != b"%d" % version):
            say(f"OLD {key}: {found} where {known} was known")
            os._exit(1)
        if what == "seen":
            newest.note(number, version)


def tell(store: CachedStore) -> None:
    """Say now and then how often the cache had an answer, so that a run without a cache in it is noticed."""
    told = 0
    while True:
        time.sleep(0.2)
        hits = store.stats()["cache_hits"]
        say(f"hits {hits - told}")
        told = hits


def main(port: str, url: str, path: str, what: str, seed: str) -> None:
    manager = Serving(("127.0.0.1", int(port)), SECRET)
    manager.connect()
    inner = manager.store()  # type: ignore[attr-defined]
    store = CachedStore(
        inner, redis_connections(url, TIMEOUT), {"person": 60.0}, lease_seconds=LEASE, retry_seconds=RETRY
    )
    newest = Newest(path)
    threading.Thread(target=write, args=(store, newest, Random(f"{seed} write")), daemon=True).start()
    threading.Thread(target=tell, args=(store,), daemon=True).start()
    read(store, newest, Random(f"{seed} read"), what)


if __name__ == "__main__":
    main(*sys.argv[1:])
