"""What may happen to a shared PostgreSQL: lost answers, ended backends, a server that stops."""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.servers import postgres
from tests.servers.postgres_wire import Cut, Wire
from tests.stores.postgres_stage import connect, store, url
from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Batch, FeedEntry, Put, feed_pages
from threadline.stores.postgres.commit import _APPLY, _log_columns
from threadline.stores.postgres.rows import columns
from threadline.stores.postgres.store import PostgresStore
from threadline.testing.store_cases import KEY, at_once, entry, record, refusals

__all__ = ["store", "url"]

pytestmark = pytest.mark.parametrize("version", postgres.VERSIONS)


# --- the feed -------------------------------------------------------------------------------------


def open_commit(db: psycopg.Connection[tuple[object, ...]], number: int) -> None:
    """Append an event as the store does, and leave the transaction open."""
    lists = (*columns([], 6), *columns([], 5), *columns([], 5), *_log_columns([entry(number)]))
    db.execute(_APPLY, (7, number, *lists))


def test_a_transaction_held_open_holds_up_nobody_and_is_not_skipped(version: str, tmp_path: Path, url: str) -> None:
    store = PostgresStore(url, wait_seconds=60)
    record(store, entry(1))
    with connect(version, postgres.schema_of(tmp_path)) as held:
        open_commit(held, 100)
        followed = store.feed()
        for number in range(2, 40):
            began = time.monotonic()
            record(store, entry(number))
            followed += store.feed(followed[-1].cursor)
            assert time.monotonic() - began < 30, "whoever commits or reads waits for nobody"
            assert [page.entry.sequence for page in followed] == list(range(1, number + 1))
        held.commit()
    followed += store.feed(followed[-1].cursor)
    assert [page.entry.sequence for page in followed] == [*range(1, 40), 100]
    assert list(feed_pages(store)) == followed, "whoever begins now is told the same in the same order"
    record(store, entry(40))
    assert [page.entry.sequence for page in store.feed(followed[-1].cursor)] == [40]
    store.close()


def test_a_transaction_that_is_given_up_leaves_no_gap(version: str, tmp_path: Path, store: PostgresStore) -> None:
    with connect(version, postgres.schema_of(tmp_path)) as held:
        open_commit(held, 100)
        record(store, entry(1))
        assert len(store.feed()) == 1
        held.rollback()
    record(store, entry(2))
    assert [(page.cursor, page.entry.sequence) for page in store.feed()] == [("1", 1), ("2", 2)]
    assert store.integrity() == []


def test_many_followers_are_told_the_same_order(store: PostgresStore) -> None:
    told: list[list[FeedEntry]] = [[], [], []]

    def follow(found: list[FeedEntry], limit: int) -> None:
        while len(found) < 120:
            found.extend(store.feed(found[-1].cursor if found else "", limit))

    def write(first: int) -> None:
        for number in range(first, first + 40, 2):
            assert store.commit([Batch([entry(number)]), Batch([entry(number + 1)])]) == [None] * 2

    at_once(
        *[partial(follow, found, limit) for found, limit in zip(told, (1, 7, 100), strict=True)],
        *[partial(write, first) for first in (1_000, 2_000, 3_000)],
    )
    assert told[0] == told[1] == told[2] == list(feed_pages(store))
    assert [page.cursor for page in told[0]] == [str(number) for number in range(1, 121)]


# --- answers that are lost --------------------------------------------------------------------------


@pytest.fixture
def wire(version: str) -> Iterator[tuple[Wire, str]]:
    server = postgres.server(version)
    with tempfile.TemporaryDirectory(prefix="threadline-wire-") as folder:
        schema = postgres.schema_of(Path(folder))
        server.made(schema)
        made = Wire(server.folder, Path(folder))
        yield made, server.url(schema).replace(str(server.folder), folder)
        made.close()


@pytest.mark.parametrize("when", ["before", "after", "late"])
def test_an_answer_that_is_lost_is_found_out(wire: tuple[Wire, str], when: Cut) -> None:
    cable, url = wire
    store = PostgresStore(url)
    record(store, entry(1))  # learns what it needs to know, so that the next request is the commit itself
    assert store.commit([Batch(writes=[Put(KEY, b"0", 0)])]) == [None]
    cable.cut(when)
    assert store.commit([Batch([entry(2)], [Put(KEY, b"1", 1)])]) == [None], "neither refused nor a duplicate"
    assert cable.cuts == 1
    if when == "late":
        cable.deliver()
    [item] = store.get([KEY])
    assert item == (KEY, 2, b"1")
    assert [page.entry.sequence for page in store.feed()] == [1, 2]
    assert store.commit([Batch([entry(2)])]) == [("event_exists", entry(2).id)]
    assert store.integrity() == []
    store.close()


@pytest.mark.parametrize("asking", [b"INSERT INTO commits", b"SELECT events"])
@pytest.mark.parametrize("first", ["before", "after"])
@pytest.mark.parametrize("then", ["before", "after"])
def test_the_answer_to_finding_out_may_be_lost_as_well(
    wire: tuple[Wire, str], first: Cut, then: Cut, asking: bytes
) -> None:
    cable, url = wire
    store = PostgresStore(url)
    cable.cut(first)
    cable.cut(then, asking)
    assert store.commit([Batch([entry(1)], [Put(KEY, b"1", 0)])]) == [None]
    assert cable.cuts == 2
    assert store.get([KEY]) == [(KEY, 1, b"1")]
    assert [page.entry for page in store.feed()] == [entry(1)]
    store.close()


@pytest.mark.parametrize("when", ["before", "after", "late"])
def test_a_refusal_stays_a_refusal_when_its_answer_is_lost(wire: tuple[Wire, str], when: Cut) -> None:
    cable, url = wire
    store = PostgresStore(url)
    record(store, entry(1))
    assert store.commit([Batch(writes=[Put(KEY, b"0", 0)])]) == [None]
    cable.cut(when)
    assert refusals(store, Batch([entry(2)], [Put(KEY, b"1", 5)])) == ["version"]
    if when == "late":
        cable.deliver()
    assert [page.entry.sequence for page in store.feed()] == [1]
    store.close()


# --- connections and servers that end ----------------------------------------------------------------


class Counting:
    """Threads that count an item up and log an event for each; what they acknowledge must be there once."""

    def __init__(self, store: PostgresStore, threads: int = 3) -> None:
        self.store = store
        self.acknowledged: set[int] = set()
        self.stopping = threading.Event()
        self.errors: list[BaseException] = []
        self._numbers = itertools.count(1)
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        try:
            while not self.stopping.is_set():
                self._count(next(self._numbers))
        except BaseException as error:  # noqa: BLE001 - handed over to the test
            self.errors.append(error)

    def _count(self, number: int) -> None:
        while True:
            item = self.store.get([KEY])[0]
            version, value = (item.version, int(item.value)) if item else (0, 0)
            batch = Batch([entry(number)], [Put(KEY, b"%d" % (value + 1), version)])
            refusal = self.store.commit([batch])[0]
            if refusal is None:
                self.acknowledged.add(number)
                return
            assert refusal.reason == "version", "its event is not there, for it was never acknowledged"

    def end(self) -> None:
        """Stop, and check that what was acknowledged is there, and nothing else."""
        self.stopping.set()
        for thread in self._threads:
            thread.join(60)
        assert self.errors == []
        [item] = self.store.get([KEY])
        assert item is not None
        assert item.version == int(item.value) == len(self.acknowledged)
        assert sorted(page.entry.sequence for page in feed_pages(self.store)) == sorted(self.acknowledged)
        assert self.store.integrity() == []


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)


def test_backends_that_are_ended_lose_nothing_and_double_nothing(version: str, store: PostgresStore) -> None:
    counting = Counting(store)
    ended = 0
    with connect(version) as stranger:
        for _ in range(30):
            before = len(counting.acknowledged)
            wait_for(lambda before=before: len(counting.acknowledged) > before or bool(counting.errors))
            ended += len(
                stranger.execute(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE application_name = 'threadline' AND pid <> pg_backend_pid()"""
                ).fetchall()
            )
    counting.end()
    assert ended >= 30


@pytest.fixture
def lone(version: str) -> Iterator[postgres.Server]:
    made = postgres.fresh(version, postgres.memory())
    yield made
    postgres.end(made)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops_under_load_and_comes_back(lone: postgres.Server, mode: str) -> None:
    store = PostgresStore(lone.made("threads"), retry_seconds=120)
    counting = Counting(store)
    for _ in range(2):
        before = len(counting.acknowledged)
        wait_for(lambda before=before: len(counting.acknowledged) > before + 20 or bool(counting.errors))
        lone.stop(mode)
        time.sleep(0.3)
        lone.start()
    before = len(counting.acknowledged)
    wait_for(lambda: len(counting.acknowledged) > before or bool(counting.errors))
    counting.end()
    store.close()


def test_a_server_that_stays_away_is_told_and_found_again(lone: postgres.Server) -> None:
    store = PostgresStore(lone.made("threads"), retry_seconds=0.3)
    record(store, entry(1))
    lone.stop()
    for ask in (lambda: store.get([KEY]), lambda: store.commit([Batch([entry(2)])])):
        began = time.monotonic()
        with pytest.raises(Unavailable, match="cannot be reached"):
            ask()
        assert time.monotonic() - began < 30
    with pytest.raises(Unavailable, match="cannot be reached"):
        PostgresStore(lone.url("threads"))
    lone.start()
    record(store, entry(2))
    assert [page.entry.sequence for page in store.feed()] == [1, 2]
    store.close()


def test_who_asks_while_a_server_stays_away_need_not_wait_for_it_again(
    lone: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would queue for the few threads that read, each for as long as all before them together."""
    store = PostgresStore(lone.made("threads"), retry_seconds=0.3)
    record(store, entry(1))
    lone.stop()
    with pytest.raises(Unavailable):
        store.get([KEY])
    time.sleep(0.3)  # on a busy machine the first call may have noticed late that the server is gone
    connect, tries = store._connections._connect, list[int]()
    monkeypatch.setattr(store._connections, "_connect", lambda: tries.append(1) or connect())
    for count in (1, 2):
        with pytest.raises(Unavailable, match="cannot be reached"):
            store.get([KEY])
        assert len(tries) == count
    lone.start()
    record(store, entry(2))
    assert store._connections._away_since is None, "the next time it is waited for again"
    store.close()


def test_connections_that_may_not_write_are_replaced_once_others_may(lone: postgres.Server) -> None:
    """As where a name led to a stand-by for a while, or a host takes writes away while the disk is full."""
    url = lone.made("threads")
    store = PostgresStore(url, retry_seconds=0.3)
    record(store, entry(1))
    assert len(store.feed()) == 1
    with psycopg.connect(url.partition("&schema=")[0], autocommit=True) as stranger:
        stranger.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
        stranger.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'threadline'")
        assert [page.entry.sequence for page in store.feed()] == [1], "what only reads goes on"
        with pytest.raises(Unavailable, match="read-only"):
            record(store, entry(2))
        at_once(*[lambda: store.get([KEY])] * 4)  # leaves several such connections behind
        stranger.execute("ALTER DATABASE postgres RESET default_transaction_read_only")
    record(store, entry(2))
    assert [page.entry.sequence for page in store.feed()] == [1, 2]
    store.close()


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("ALTER SCHEMA threads RENAME TO elsewhere", "ALTER SCHEMA elsewhere RENAME TO threads"),
        ("REVOKE INSERT ON threads.log FROM worker", "GRANT INSERT ON threads.log TO worker"),
    ],
)
def test_what_an_operator_has_to_see_to_is_no_fault_of_callers(lone: postgres.Server, taken: str, given: str) -> None:
    """A client that is told 400 throws its events away, and these are to be sent again."""
    url = lone.made("threads")
    with psycopg.connect(url.partition("&schema=")[0], autocommit=True) as operator:
        operator.execute("CREATE ROLE worker LOGIN")
        operator.execute("GRANT USAGE ON SCHEMA threads TO worker")
        operator.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA threads TO worker")
        store = PostgresStore(url.replace("postgres@", "worker@"))
        record(store, entry(1))
        operator.execute(taken)
        with pytest.raises(Unavailable) as caught:
            record(store, entry(2))
        assert (caught.value.status, bool(caught.value.hint)) == (503, True)
        operator.execute(given)
    record(store, entry(2))
    assert [page.entry.sequence for page in store.feed()] == [1, 2]
    store.close()


def test_a_stand_by_takes_over_under_load(version: str, lone: postgres.Server) -> None:
    lone.made("threads")
    second = postgres.stand_by(version, lone)
    try:
        both = f"host={lone.folder},{second.folder}&target_session_attrs=read-write"
        store = PostgresStore(lone.url("threads").replace(f"host={lone.folder}", both), retry_seconds=120)
        counting = Counting(store)
        wait_for(lambda: len(counting.acknowledged) > 20 or bool(counting.errors))
        reader = PostgresStore(second.url("threads"), readonly=True)
        told = store.feed(limit=10)
        wait_for(lambda: reader.feed(limit=10) == told)
        lone.stop("immediate")
        second.promote()
        before = len(counting.acknowledged)
        wait_for(lambda: len(counting.acknowledged) > before + 20 or bool(counting.errors))
        counting.end()
        assert store.feed(limit=10) == told == reader.feed(limit=10)
        reader.close()
        store.close()
    finally:
        postgres.end(second)
