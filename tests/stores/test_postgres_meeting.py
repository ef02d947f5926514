"""Commits that meet on one PostgreSQL: all go through, take turns, or are told that others are in the way."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.servers import postgres
from tests.stores.postgres_stage import connect, store, url
from threadline.kernel.errors import StoreBusy, Unavailable
from threadline.kernel.store import Batch, Check, Delete, Key, Put, feed_pages
from threadline.stores.postgres.store import PostgresStore
from threadline.testing.store_cases import KEY, at_once, entry, put, record, refusals

__all__ = ["store", "url"]

pytestmark = pytest.mark.parametrize("version", postgres.VERSIONS)


@pytest.mark.parametrize("crossing", [False, True])
def test_commits_that_write_the_same_items_all_go_through(version: str, store: PostgresStore, crossing: bool) -> None:
    keys = [Key("t", f"p{number}") for number in range(12)]
    for key in keys[:6]:
        assert store.commit([Batch(writes=[Put(key, b"")])]) == [None]
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    with connect(version) as stranger:
        [(before,)] = stranger.execute(deadlocks).fetchall()

    def write(chosen: list[Key], numbers: Iterator[int]) -> None:
        for _ in range(10 if crossing else 40):
            # What one removes and another puts, in any order, is what the order of locks does not cover.
            writes = [Delete(key) if crossing and not n % 3 else Put(key, b"x") for n, key in enumerate(chosen)]
            assert store.commit([Batch([entry(next(numbers))], writes)]) == [None]

    at_once(
        lambda: write(keys, itertools.count(1)),
        lambda: write(keys[::-1], itertools.count(1_000)),
        lambda: write([*keys[5:], *keys[:5]], itertools.count(2_000)),
    )
    assert len(list(feed_pages(store))) == (30 if crossing else 120)
    time.sleep(1.2)  # a backend reports what it has counted about once a second
    with connect(version) as stranger:
        assert crossing or stranger.execute(deadlocks).fetchall() == [(before,)]


def test_counting_several_items_at_once_neither_blocks_nor_loses(version: str, store: PostgresStore) -> None:
    keys = [Key("t", f"p{number}") for number in range(6)]

    def count_up(chosen: list[Key]) -> None:
        done = 0
        while done < 15:
            versions = [item.version if item else 0 for item in store.get(chosen)]
            writes = [Put(key, b"x", version) for key, version in zip(chosen, versions, strict=True)]
            done += store.commit([Batch(writes=writes)]) == [None]

    at_once(lambda: count_up(keys), lambda: count_up(keys[::-1]), lambda: count_up([*keys[3:], *keys[:3]]))
    assert [item and item.version for item in store.get(keys)] == [45] * 6


def test_two_who_check_that_the_others_item_is_absent_do_not_both_write(store: PostgresStore) -> None:
    for number in range(12):
        one, other = Key("t", f"one{number}"), Key("t", f"other{number}")
        outcomes: list[str | None] = []
        batches = (Batch(writes=[Check(one, 0), Put(other, b"")]), Batch(writes=[Check(other, 0), Put(one, b"")]))
        at_once(*[partial(_tell, store, batch, outcomes) for batch in batches])
        assert sorted(outcomes, key=str) == [None, "version"]


def _tell(store: PostgresStore, batch: Batch, outcomes: list[str | None]) -> None:
    outcomes.extend(refusals(store, batch))


def test_who_waits_too_long_for_a_lock_is_told(version: str, tmp_path: Path, url: str) -> None:
    store = PostgresStore(url, wait_seconds=0.2, connections_max=1)
    assert store.commit([Batch(writes=[Put(KEY, b"1", 0)])]) == [None]
    with connect(version, postgres.schema_of(tmp_path)) as stranger:
        stranger.execute("SELECT 1 FROM item FOR UPDATE")
        with pytest.raises(StoreBusy):
            store.commit([Batch(writes=[Put(KEY, b"2", 1)])])
    assert store.commit([Batch(writes=[Put(KEY, b"2", 1)])]) == [None]
    store.close()


def test_who_finds_no_free_connection_is_told(url: str) -> None:
    store = PostgresStore(url, wait_seconds=0.1, connections_max=1)
    with store._connections._borrowed(), pytest.raises(StoreBusy, match="in use"):
        store.feed()
    assert store.feed() == []
    store.close()


# --- turns ----------------------------------------------------------------------------------------


def test_those_who_want_the_same_item_take_turns_and_others_do_not_wait(url: str, store: PostgresStore) -> None:
    other, third = PostgresStore(url), Key("t", "third")
    came = threading.Event()

    def come() -> None:
        with other.advisory_lock([third, KEY]):
            came.set()

    waiting = threading.Thread(target=come)
    with store.advisory_lock([KEY, Key("t", "elsewhere")]):
        waiting.start()
        assert not came.wait(0.3)
        with other.advisory_lock([Key("t", "free")]):
            assert not came.is_set()
    assert came.wait(60)
    waiting.join()
    other.close()


def test_a_turn_is_not_waited_for_for_ever_and_a_broken_one_is_no_error(version: str, url: str) -> None:
    store, hasty = PostgresStore(url), PostgresStore(url, wait_seconds=0.2)
    with store.advisory_lock([KEY]):
        with hasty.advisory_lock([KEY]):
            put(hasty, KEY)
        # Whoever holds a turn and dies lets the next one in.
        with connect(version) as stranger:
            stranger.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
        with hasty.advisory_lock([KEY]):
            put(hasty, KEY)
    store.close()
    hasty.close()


def test_a_turn_leaves_the_only_connection_to_the_work(url: str) -> None:
    store = PostgresStore(url, wait_seconds=0.2, connections_max=1)
    with store.advisory_lock([KEY]):
        put(store, KEY)
    store.close()


def test_a_reader_writes_nothing(url: str, store: PostgresStore) -> None:
    reader = PostgresStore(url, readonly=True)
    record(store, entry(1))
    assert [page.entry for page in reader.feed()] == [entry(1)]
    with pytest.raises(Unavailable, match="reading only"):
        reader.commit([Batch([entry(2)])])
    reader.close()


def test_the_longest_keys_fit_whatever_they_hold(store: PostgresStore) -> None:
    # An index compresses what repeats itself, so only what does not shows how much fits.
    table, partition, sort = (os.urandom(512).hex() for _ in range(3))
    assert store.commit([Batch(writes=[Put(Key(table, partition, sort), b"v")])]) == [None]
    assert store.tables() == [table]
    assert [item.key for item in store.query(table, partition)] == [Key(table, partition, sort)]
