"""Stores on a test's table whose every request can be seen, held up, lost or answered by the test."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from threadline.kernel.store import FeedEntry
from threadline.kernel.time import system_clock
from threadline.stores.dynamodb.address import Address, parse
from threadline.stores.dynamodb.client import Client
from threadline.stores.dynamodb.store import DynamoStore

EXPIRY_SECONDS = 1.0
Answer = tuple[int, bytes]
Before = Callable[[str, dict[str, Any], Callable[..., Answer]], Answer]
Opening = Callable[..., DynamoStore]


class Spy(Client):
    """A client that shows every request to ``before``, which may hold it up or answer in the server's stead."""

    def __init__(self, address: Address, **options: Any) -> None:
        super().__init__(address, **options)
        self.before: Before = lambda name, body, go: go()
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def post(self, endpoint: str, headers: dict[str, str], data: bytes) -> Answer:
        name, body = headers["x-amz-target"].rpartition(".")[2], json.loads(data)
        self.requests.append((name, body))
        return self.before(name, body, lambda content=data: super(Spy, self).post(endpoint, headers, content))


@contextmanager
def opening(url: str) -> Iterator[Opening]:
    """Opens stores on a table; each has a client, a clock and a part in the journal of its own."""
    opened: list[DynamoStore] = []

    def open(clock: Callable[[], int] = system_clock, **options: Any) -> DynamoStore:
        client = Spy(parse(url), **options)
        opened.append(DynamoStore(url, clock, client=client, expiry_seconds=EXPIRY_SECONDS))
        return opened[-1]

    yield open
    for store in opened:
        store.close()


def spy(store: DynamoStore) -> Spy:
    assert isinstance(store.client, Spy)
    return store.client


class Gate:
    """Holds up the first request of a name until it is opened."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        if name == self.name and not self.reached.is_set():
            self.reached.set()
            assert self.opened.wait(60)
        return go()


def told(store: DynamoStore, count: int, cursor: str = "") -> list[FeedEntry]:
    """The feed after a cursor, once it has so many entries: other processes' commits show a little later."""
    deadline = time.monotonic() + 60
    while len(found := store.feed(cursor)) < count:
        assert time.monotonic() < deadline, f"the feed has only {found}"
        time.sleep(0.01)
    return found


def ids(pages: list[FeedEntry]) -> list[str]:
    return [page.entry.id for page in pages]
