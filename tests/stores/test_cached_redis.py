"""The cache is never older than the store, and in nobody's way, whatever happens to Redis."""

from __future__ import annotations

import logging
import time

import pytest

from tests.servers.redis import RedisProcess
from tests.stores.cached_stage import (
    LEASE,
    LIFETIMES,
    OTHER,
    RETRY,
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
from threadline.kernel.errors import InvalidSetting
from threadline.stores.redis.cached_store import CachedStore, redis_connections
from threadline.stores.redis.client import RedisUnreachable
from threadline.stores.redis.epochs import CLOSED, MARGIN
from threadline.stores.redis.invalidation import RedisCache

__all__ = ["one", "redis", "store", "two"]


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
                store,
                connect,
                LIFETIMES,
                lease_seconds=LEASE,
                retry_seconds=60,
                seconds=lambda: time.monotonic() + ahead[0],
            )
        )
        for _ in range(2)
    )
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
