"""The cache obeys the store laws, and is never older than the store, whatever happens to Redis."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.servers import redis as servers
from tests.servers.redis import RedisProcess
from threadline.kernel.errors import InvalidSetting, InvalidValue
from threadline.kernel.store import Batch, Delete, Item, Key, Put, Refusal, Store
from threadline.stores.cache_epochs import CLOSED, EPOCH, MARGIN, OPEN
from threadline.stores.cached import PAGE_BYTES_MAX, CachedStore, redis_connections
from threadline.stores.memory import MemoryStore
from threadline.stores.redis_cache import RedisCache
from threadline.stores.redis_client import RedisUnreachable
from threadline.testing.store_cases import put
from threadline.testing.store_laws import StoreLaws

LEASE, RETRY = 0.1, 0.1
TIMEOUT = 10.0
"""Long, so that a busy machine is not taken for a Redis that stands still."""
KEY, OTHER = Key("person", "ada"), Key("person", "bea")
LIFETIMES = {"person": 300.0, "board": 60.0}


@pytest.fixture(scope="module")
def module_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with servers.running(tmp_path_factory.mktemp("redis")) as server:
        yield server


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


class TestCachedStore(StoreLaws):
    url = ""

    @pytest.fixture(autouse=True)
    def _redis(self, module_redis: RedisProcess) -> None:
        type(self).url = module_redis.url

    def open(self, folder: Path) -> Store:
        tables = ("a", "b", "other", "t", "table")
        return opened(cached(MemoryStore(), self.url, dict.fromkeys(tables, 60.0), lease=0.02))


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


class Died(BaseException):
    """The process ends here."""


def die() -> None:
    raise Died


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


# --- what may happen to Redis -------------------------------------------------------------------


def test_without_redis_everything_goes_on(store: CountingStore, caplog: pytest.LogCaptureFixture) -> None:
    alone = cached(store, "redis://127.0.0.1:1/0")
    with caplog.at_level(logging.WARNING, "threadline.cache"):
        assert value(alone) is None
        waited = waits(alone)
        write(alone, 0)
        assert waited == []
        assert value(alone) == (1, b"1")
    assert alone._epochs.current().phase == CLOSED


def test_a_redis_that_dies_costs_one_wait_and_comes_back(
    store: CountingStore, one: CachedStore, two: CachedStore, redis: RedisProcess
) -> None:
    write(one, 0)
    assert value(two) == (1, b"1")
    redis.kill()
    assert value(two) == (1, b"1")
    waited = waits(one)
    for version in range(1, 20):
        write(one, version)
        assert value(two) == (version + 1, b"%d" % (version + 1))
    assert len(waited) == 1
    assert waited[0] <= LEASE * MARGIN
    redis.start()
    time.sleep(RETRY * 3)
    opened(one)
    opened(two)
    write(one, 20)
    reads = store.reads
    assert value(two) == (21, b"21")
    assert store.reads == reads


def hasten(made: CachedStore, url: str, timeout: float) -> list[str]:
    """Let it wait so long for Redis from now on; the lives of the cache for which it then connects."""
    connect, tried = redis_connections(url, timeout), []

    def noted(nonce: str, run_id: str) -> RedisCache:
        tried.append(nonce)
        return connect(nonce, run_id)

    made._connect, made._life = noted, None
    return tried


def test_a_paused_redis_holds_nobody_up_for_long(store: CountingStore, redis: RedisProcess) -> None:
    ahead = [0.0]
    connect = redis_connections(redis.url, TIMEOUT)
    one, two = (
        opened(
            CachedStore(
                store, connect, LIFETIMES, lease_seconds=LEASE, retry_seconds=60,
                seconds=lambda: time.monotonic() + ahead[0],
            )
        )
        for _ in range(2)
    )  # fmt: skip
    write(one, 0)
    assert value(two) == (1, b"1")
    redis.pause()
    waited, tried = waits(one), [hasten(each, redis.url, 0.1) for each in (one, two)]
    write(one, 1)
    assert (len(tried[0]), len(waited)) == (1, 1)
    assert waited[0] <= LEASE * MARGIN
    for seconds, attempts in ((0, 0), (61, 1)):  # once in a while one caller looks whether it is there again
        ahead[0] = seconds
        assert [value(two) for _ in range(20)] == [(2, b"2")] * 20
        assert len(tried[1]) == attempts
    redis.resume()  # and now does what was asked of it while it stood still
    assert value(two) == (2, b"2")
    for each in (one, two):
        hasten(each, redis.url, TIMEOUT)
    ahead[0] = 200
    opened(one)
    assert value(opened(two)) == (2, b"2")


def test_an_emptied_redis_is_not_used_again_before_all_know(
    store: CountingStore, one: CachedStore, two: CachedStore, redis: RedisProcess
) -> None:
    """The marks of a writer are gone, and it will not be able to say that it has committed."""
    write(one, 0)

    def empty() -> None:
        redis.command("FLUSHALL")
        assert value(two) == (1, b"1")
        store.after_commit = die

    store.before_commit = empty
    with pytest.raises(Died):
        write(one, 1)
    assert value(two) == (2, b"2")


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_emptied_redis_forgets_no_mark_unnoticed(
    store: CountingStore, one: CachedStore, two: CachedStore, redis: RedisProcess, when: str
) -> None:
    write(one, 0)

    def empty() -> None:
        redis.command("FLUSHALL")
        value(two)  # what was there is asked for by another process at the worst instant, and may not be kept

    setattr(store, f"{when}_commit", empty)
    write(one, 1)
    assert value(two) == value(one) == (2, b"2")
    opened(two)
    assert value(two) == (2, b"2")


def test_marks_that_were_pushed_out_leave_nothing_behind(
    store: CountingStore, one: CachedStore, two: CachedStore, redis: RedisProcess
) -> None:
    write(one, 0)

    def push_out() -> None:
        names = redis.command("KEYS", "threadline:*:s:*").decode().split()
        redis.command("DEL", *(name for name in names if ":s:" in name))
        assert value(two) == (1, b"1")

    store.before_commit = push_out
    write(one, 1)
    assert value(two) == (2, b"2")


def test_a_writer_who_cannot_say_that_it_is_done_sees_to_it_that_nobody_reads(
    store: CountingStore, one: CachedStore, two: CachedStore, redis: RedisProcess
) -> None:
    write(one, 0)

    def push_out_and_part() -> None:
        names = redis.command("KEYS", "threadline:*:s:*").decode().split()
        redis.command("DEL", *(name for name in names if ":s:" in name))
        assert value(two) == (1, b"1")
        assert one._life is not None
        one._life[1]._settle = unreachable

    store.before_commit = push_out_and_part
    write(one, 1)
    assert value(two) == (2, b"2")


def unreachable(keys: object, arguments: object) -> None:
    raise RedisUnreachable("the answer was lost")


def test_a_redis_that_comes_back_with_an_older_state_is_not_believed(
    store: CountingStore, one: CachedStore, two: CachedStore, redis: RedisProcess
) -> None:
    write(one, 0)
    assert b"OK" in redis.command("SAVE")
    write(one, 1)
    redis.kill()
    redis.start()
    assert b"threadline" in redis.command("KEYS", "threadline:*:v:*")
    assert value(two) == value(one) == (2, b"2")
    assert value(opened(two)) == (2, b"2")


def test_a_redis_that_refuses_us_is_told_of(
    store: CountingStore, one: CachedStore, redis: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    write(one, 0)
    redis.command("CONFIG", "SET", "maxmemory", "1")
    with caplog.at_level(logging.WARNING, "threadline.cache"):
        assert value(one, OTHER) is None
        write(one, 1)
    assert value(one) == (2, b"2")
    assert "OOM" in caplog.text
    assert one.stats()["cache_failures"] >= 1


def test_an_address_that_cannot_be_is_told_at_once() -> None:
    for url in ("http://127.0.0.1:1", "redis://127.0.0.1:x"):
        with pytest.raises(InvalidSetting, match="cache"):
            redis_connections(url, TIMEOUT)
