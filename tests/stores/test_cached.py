"""The cache obeys the store laws, and is never older than the store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import redis as servers
from tests.servers.redis import RedisProcess
from tests.stores.cached_stage import (
    KEY,
    LEASE,
    TIMEOUT,
    CountingStore,
    Died,
    cached,
    die,
    one,
    opened,
    redis,
    store,
    two,
    value,
    waits,
    write,
)
from threadline.kernel.errors import InvalidValue
from threadline.kernel.store import Batch, Delete, Key, Put, Store
from threadline.stores.memory import MemoryStore
from threadline.stores.redis.cached_store import PAGE_BYTES_MAX, CachedStore, redis_connections
from threadline.stores.redis.epochs import MARGIN
from threadline.testing.store_cases import put
from threadline.testing.store_laws import StoreLaws

__all__ = ["one", "redis", "store", "two"]


@pytest.fixture(scope="module")
def module_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with servers.running(tmp_path_factory.mktemp("redis")) as server:
        yield server


class TestCachedStore(StoreLaws):
    url = ""

    @pytest.fixture(autouse=True)
    def _redis(self, module_redis: RedisProcess) -> None:
        type(self).url = module_redis.url

    def open(self, folder: Path) -> Store:
        tables = ("a", "b", "other", "t", "table")
        return opened(cached(MemoryStore(), self.url, dict.fromkeys(tables, 60.0), lease=0.02))


# --- what it is for -------------------------------------------------------------------------


def test_what_was_read_once_is_answered_without_the_store(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    put(store, KEY, b"1")
    assert value(one) == (1, b"1")
    reads = store.reads
    assert value(one) == value(two) == (1, b"1")
    assert one.get([KEY, KEY]) == [(KEY, 1, b"1")] * 2
    assert store.reads == reads


def test_what_is_written_is_written_through_with_its_version(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    write(one, 0)
    write(one, 1)
    reads = store.reads
    assert value(two) == (2, b"2")
    assert store.reads == reads
    assert two.stats()["cache_hits"] == 1


def test_only_declared_tables_are_kept(store: CountingStore, one: CachedStore) -> None:
    lease = Key("lease", "timer/00")
    put(one, lease, b"1")
    assert value(one, lease) == value(one, lease) == (1, b"1")
    assert store.reads == 2


def test_pages_are_answered_until_their_partition_changes(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    for rank in range(5):
        put(one, Key("board", "north", f"{rank}"), b"x")
    top = one.query("board", "north", limit=3)
    reads = store.reads
    assert two.query("board", "north", limit=3) == top
    assert two.query("board", "north", "", None, 3, False) == top
    assert store.reads == reads
    assert two.query("board", "north", limit=3, reverse=True) != top
    put(one, Key("board", "south", "0"))
    put(one, Key("board", "north", "00"), b"new")
    assert [item.key.sort for item in two.query("board", "north", limit=3)] == ["0", "00", "1"]


def test_a_large_page_is_not_kept(store: CountingStore, one: CachedStore) -> None:
    put(one, Key("board", "north", "0"), b"x" * PAGE_BYTES_MAX)
    one.query("board", "north")
    reads = store.reads
    assert len(one.query("board", "north")) == 1
    assert store.reads == reads + 1


def test_each_table_has_its_lifetime(store: CountingStore, one: CachedStore, redis: RedisProcess) -> None:
    write(one, 0)
    put(one, Key("board", "north", "0"))
    one.query("board", "north")
    names = [word for word in redis.command("KEYS", "threadline:*:v:*").decode().split() if ":v:" in word]
    left = {name.split(":")[4]: int(redis.command("PTTL", name).decode().strip(":\r\n")) for name in names}
    assert 200_000 < left["person/ada"] <= 300_000
    assert 0 < left["board/north"] <= 60_000


def test_keys_that_are_no_text_are_refused_as_by_the_store(one: CachedStore) -> None:
    with pytest.raises(InvalidValue):
        one.get([Key("person", "\ud800")])
    with pytest.raises(InvalidValue):
        one.query("board", "\ud800")


# --- never older than the store ---------------------------------------------------------------


def test_a_reader_who_was_slow_does_not_bring_back_what_was_before(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    put(store, KEY, b"1")
    store.after_get = lambda: write(two, 1)
    assert value(one) == (1, b"1")  # asked before the write, and answered late
    assert value(one) == value(two) == (2, b"2")


def test_of_writers_side_by_side_none_leaves_an_older_value(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    put(store, KEY, b"1")
    # The second writer marks, commits and settles between the commit of the first and its writing through.
    store.after_commit = lambda: write(two, 2)
    write(one, 1)
    assert value(one) == value(two) == (3, b"3")
    # And the first one commits between the marks of the second and its commit.
    store.before_commit = lambda: write(two, 3)
    assert one.commit([Batch(writes=[Put(KEY, b"5")])]) == [None]
    assert value(one) == value(two) == (5, b"5")


def test_the_last_to_settle_need_not_be_the_last_who_committed(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    put(store, KEY, b"1")
    place = ("person", "ada")
    first, second = one._mark([place]), two._mark([place])
    for version in (1, 2):
        write(store, version)
    one._settle(first, [place], {place: {b"=-": (3).to_bytes(8, "big") + b"3"}})
    two._settle(second, [place], {place: {b"=-": (2).to_bytes(8, "big") + b"2"}})
    assert value(one) == value(two) == (3, b"3")


def test_a_refused_write_leaves_what_is_there(one: CachedStore, two: CachedStore) -> None:
    write(one, 0)
    assert [refusal and refusal.reason for refusal in two.commit([Batch(writes=[Put(KEY, b"x", 7)])])] == ["version"]
    assert value(one) == value(two) == (1, b"1")


def test_what_was_deleted_is_gone_and_may_begin_anew(one: CachedStore, two: CachedStore) -> None:
    write(one, 0)
    write(one, 1)
    assert value(two) == (2, b"2")
    assert one.commit([Batch(writes=[Delete(KEY)])]) == [None]
    assert value(two) is None
    write(one, 0)
    assert value(two) == (1, b"1")


def test_a_writer_who_dies_after_its_commit_leaves_no_older_value(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    write(one, 0)
    assert value(two) == (1, b"1")
    store.after_commit = die
    with pytest.raises(Died):
        write(one, 1)
    assert value(two) == value(two) == (2, b"2")
    # It stays in doubt until the dead writer is given up, and others go on writing meanwhile.
    write(two, 2)
    assert value(two) == (3, b"3")


def test_a_writer_who_cannot_reach_redis_is_waited_for_by_itself_only(
    store: CountingStore, one: CachedStore, redis: RedisProcess
) -> None:
    """The others go on reading from Redis, so nothing may be written past it before they have stopped."""
    apart = opened(cached(store, redis.url))
    write(one, 0)
    assert value(one) == (1, b"1")
    apart._connect = redis_connections("redis://127.0.0.1:1/0", TIMEOUT)
    apart._life = None
    waited, began = waits(apart), time.monotonic()
    write(apart, 1)
    assert time.monotonic() - began >= LEASE
    assert len(waited) == 1
    assert waited[0] <= LEASE * MARGIN
    assert value(one) == (2, b"2")
    write(apart, 2)
    assert len(waited) == 1
    assert value(one) == (3, b"3")


def test_a_commit_that_outlasts_the_life_of_its_cache_is_not_missed_by_the_next(
    store: CountingStore, one: CachedStore, two: CachedStore
) -> None:
    put(store, KEY, b"1")

    def another_life() -> None:
        nonce = two._epochs.current().nonce
        two._epochs.close(nonce)
        while two._epochs.current().nonce == nonce:
            time.sleep(0.005)
        opened(two)
        assert value(two) == (1, b"1")  # and so it is in the new cache

    store.before_commit = another_life
    write(one, 1)
    assert value(two) == (2, b"2")
    assert value(opened(one)) == (2, b"2")
