"""The stores that must all behave alike, how each is opened for a test, and in what they may differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers import dynamodb, postgres
from tests.servers import redis as redis_servers
from threadline.kernel.store import Store
from threadline.stores.memory import MemoryStore
from threadline.stores.redis.cached_store import CachedStore, redis_connections
from threadline.stores.redis.epochs import OPEN
from threadline.stores.sqlite.store import SqliteStore

MODEL = "memory"


class Mark(NamedTuple):
    """Something in which a backend differs from the memory store, and may."""

    backend: str
    what: str
    why: str


FEED_ORDER = "feed order across threads"
SCAN_ORDER = "the order in which a table is listed"

MARKS: list[Mark] = []
"""All of them: none so far. A difference that is not here fails a test, and one that is here and does not show fails as
well."""


class Backend(NamedTuple):
    """One kind of store."""

    name: str
    runs_on: str
    """``real``: the engine itself; ``emulated``: something that speaks its protocol."""
    open: Callable[[Path], Store]
    share: float = 1.0
    """Of the suites of capabilities, engine and laws, how much is run on it in an ordinary run; see `elsewhere`."""
    subjects: float = 1.0
    """Of their eighty subjects, how many are drawn for an ordinary run."""


def _cached(folder: Path) -> Store:
    made = CachedStore(
        SqliteStore(folder / "cached.db"),
        redis_connections(_redis().url, 1.0),
        {"person": 300.0, "thread": 300.0, "tag": 60.0, "group": 60.0},
        lease_seconds=0.05,
        retry_seconds=0.05,
    )
    while made._epochs.current().phase != OPEN:
        pass
    return made


_SERVERS: list[redis_servers.RedisProcess] = []


def _redis() -> redis_servers.RedisProcess:
    assert _SERVERS, "open a backend inside `servers`"
    return _SERVERS[-1]


@contextmanager
def servers(folder: Path) -> Iterator[None]:
    """The servers that are no process of the tests' own keeping end here."""
    with redis_servers.running(folder) as server:
        _SERVERS.append(server)
        try:
            yield
        finally:
            _SERVERS.pop()


BACKENDS = [
    Backend(MODEL, "real", lambda folder: MemoryStore()),
    Backend("sqlite", "real", lambda folder: SqliteStore(folder / "x.db", tail_entries_max=64), 1 / 30),
    Backend("sqlite behind Redis", "real", _cached, 1 / 40, 1 / 2),
    *(
        Backend(
            f"postgres {version}",
            "real",
            lambda folder, v=version: postgres.store_in(postgres.server(v), folder),
            1 / 40 if version == postgres.VERSIONS[0] else 1 / 100,
            1 / 2 if version == postgres.VERSIONS[0] else 1 / 4,
        )
        for version in postgres.VERSIONS
    ),
    Backend("dynamodb", "emulated", lambda folder: dynamodb.ministack().open(folder), 1 / 40, 1 / 4),
]


def marked(backend: str, what: str) -> bool:
    """Whether this difference is declared."""
    return any(mark.backend == backend and mark.what == what for mark in MARKS)
