"""Processes behind one cache on one store, and what a test does to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.servers import redis as servers
from tests.servers.redis import RedisProcess
from threadline.kernel.store import Batch, Item, Key, Put, Refusal, Store
from threadline.stores.memory import MemoryStore
from threadline.stores.redis.cached_store import CachedStore, redis_connections
from threadline.stores.redis.epochs import EPOCH, OPEN

LEASE, RETRY = 0.1, 0.1
TIMEOUT = 10.0
"""Long, so that a busy machine is not taken for a Redis that stands still."""
KEY, OTHER = Key("person", "ada"), Key("person", "bea")
LIFETIMES = {"person": 300.0, "board": 60.0}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisProcess]:
    with servers.running(tmp_path) as server:
        yield server


def cached(store: Store, url: str, lifetimes: dict[str, float] = LIFETIMES, lease: float = LEASE) -> CachedStore:
    connect = redis_connections(url, TIMEOUT)
    return CachedStore(store, connect, lifetimes, lease_seconds=lease, retry_seconds=RETRY)


def opened(made: CachedStore) -> CachedStore:
    """The same once the cache is in use."""
    for _ in range(10_000):
        if made._epochs.current().phase == OPEN:
            return made
        time.sleep(0.005)
    raise AssertionError("the cache did not open")


class CountingStore(MemoryStore):
    """A store that counts what it is asked for, but for the epoch, and does as it is told around a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.before_commit: Callable[[], None] = lambda: None
        self.after_commit: Callable[[], None] = lambda: None
        self.after_get: Callable[[], None] = lambda: None

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        found = super().get(keys)
        if EPOCH not in keys:
            self.reads += 1
            then, self.after_get = self.after_get, lambda: None
            then()
        return found

    def query(self, *arguments: object, **named: object) -> list[Item]:
        self.reads += 1
        return super().query(*arguments, **named)  # type: ignore[arg-type]

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        if any(write.key == EPOCH for batch in batches for write in batch.writes):
            return super().commit(batches)
        first, self.before_commit = self.before_commit, lambda: None
        first()
        outcomes = super().commit(batches)
        then, self.after_commit = self.after_commit, lambda: None
        then()
        return outcomes


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def one(store: CountingStore, redis: RedisProcess) -> CachedStore:
    return opened(cached(store, redis.url))


@pytest.fixture
def two(store: CountingStore, redis: RedisProcess, one: CachedStore) -> CachedStore:
    """Another process on the same store and Redis."""
    return opened(cached(store, redis.url))


def value(of: Store, key: Key = KEY) -> tuple[int, bytes] | None:
    item = of.get([key])[0]
    return None if item is None else (item.version, item.value)


def write(to: Store, version: int, key: Key = KEY) -> None:
    """Write the next version, whose value says which it is."""
    assert to.commit([Batch(writes=[Put(key, b"%d" % (version + 1), version)])]) == [None]


def waits(of: CachedStore) -> list[float]:
    """How long it waits for others from now on, each time: the measure of what it costs, on any machine."""
    waited: list[float] = []
    sleep = of._epochs._sleep

    def noted(seconds: float) -> None:
        waited.append(seconds)
        sleep(seconds)

    of._epochs._sleep = noted
    return waited


class Died(BaseException):
    """The process ends here."""


def die() -> None:
    raise Died
