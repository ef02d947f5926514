"""Rate limits in a real Redis: exact windows, one count for all processes, and no limit at all without Redis."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers import redis as servers
from tests.servers.redis import RedisProcess
from threadline.kernel.time import DAY, SECOND
from threadline.stores.redis.limits import PEOPLE_AT_ONCE, RedisLimits
from threadline.surfaces.http.events.rate import Buckets
from threadline.testing.store_cases import at_once

START = 1_800_000_000 * SECOND
TIMEOUT = 10.0
fresh = map(str, itertools.count())
# Redis forgets in its own time what the clock of a test knows: windows are long enough for any machine to come back to.


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with servers.running(tmp_path_factory.mktemp("redis")) as server:
        yield server


class Clock:
    """Microseconds, set by hand."""

    now = START

    def __call__(self) -> int:
        return self.now


def limits(redis: RedisProcess) -> tuple[RedisLimits, Clock]:
    clock = Clock()
    return RedisLimits(redis.url, TIMEOUT, clock=clock), clock


@given(
    st.integers(1, 6),
    st.sampled_from((0.000_5, 0.001, 0.004)),
    st.lists(st.tuples(st.integers(0, 3_000 * SECOND), st.integers(1, 4)), min_size=1, max_size=40),
)
def test_windows_are_exact(redis: RedisProcess, burst: int, rate: float, asked: list[tuple[int, int]]) -> None:
    """Against the definition: what passed stays for a window, and longer by what it took beyond the burst."""
    on, clock = limits(redis)
    name, clock.now = next(fresh), START
    passed: list[tuple[float, int]] = []
    for pause, events in asked:
        clock.now += pause
        passed = [(until, count) for until, count in passed if until > clock.now]
        total = sum(count for _, count in passed)
        wait = on.take([(name, rate, burst)], events)
        assert wait is not None
        assert (wait == 0) == (total < burst)
        if wait:
            after = clock.now + wait * SECOND
            left = [sum(c for until, c in passed if until > at) for at in (after - 2, after)]
            assert left[0] >= burst > left[1]
        else:
            stay = (burst + max(0, total + events - burst)) / rate
            passed.append((round(clock.now + stay * SECOND), events))


@given(st.lists(st.integers(0, 400 * SECOND), min_size=20, max_size=60))
def test_no_window_holds_more_than_its_burst(redis: RedisProcess, pauses: list[int]) -> None:
    on, clock = limits(redis)
    name, clock.now = next(fresh), START
    times = []
    for pause in pauses:
        clock.now += pause
        if on.take([(name, 0.002, 5)], 1) == 0:
            times.append(clock.now)
    window = int(5 / 0.002 * SECOND)
    for at in times:
        assert sum(at - window < other <= at for other in times) <= 5


def test_five_a_minute_is_a_sliding_window(redis: RedisProcess) -> None:
    on, clock = limits(redis)
    name = next(fresh)
    for second in (0, 10, 20, 30, 40):
        clock.now = START + second * SECOND
        assert on.take([(name, 5 / 60, 5)], 1) == 0
    clock.now = START + 59 * SECOND
    assert on.take([(name, 5 / 60, 5)], 1) == pytest.approx(1.0)
    clock.now = START + 60 * SECOND
    assert on.take([(name, 5 / 60, 5)], 1) == 0
    assert on.take([(name, 5 / 60, 5)], 1) == pytest.approx(10.0)


def test_a_batch_may_overdraw_and_what_it_took_is_waited_for(redis: RedisProcess) -> None:
    on, clock = limits(redis)
    name, told = next(fresh), 0
    for second in range(3_600):
        clock.now = START + second * SECOND
        told += 30 * (on.take([(name, 2.0, 10)], 30) == 0)
    assert told <= 2 * 3_600 + 30
    assert told >= 2 * 3_600 - 60


def test_of_two_limits_both_must_have_room_and_none_is_charged_without_the_other(redis: RedisProcess) -> None:
    on, _ = limits(redis)
    wide, narrow = (next(fresh), 0.001, 100), (next(fresh), 0.001, 1)
    assert on.take([wide, narrow], 1) == 0
    for _ in range(200):
        assert on.take([wide, narrow], 1) == pytest.approx(1_000.0)
    assert on.take([wide], 99) == 0
    assert on.take([wide], 1) != 0


@given(
    st.integers(1, 6),
    st.sampled_from((0.000_5, 0.001, 0.004)),
    st.lists(
        st.tuples(st.integers(0, 3_000 * SECOND), st.lists(st.integers(0, 9), min_size=3, max_size=3)),
        min_size=1,
        max_size=30,
    ),
)
def test_people_are_counted_as_one_process_counts_them(
    redis: RedisProcess, burst: int, rate: float, asked: list[tuple[int, list[int]]]
) -> None:
    on, clock = limits(redis)
    alone = Buckets(rate, burst, seconds=lambda: (clock.now - START) / SECOND)
    names = [next(fresh) for _ in range(3)]
    clock.now = START
    for pause, counts in asked:
        clock.now += pause
        people = [(name, count) for name, count in zip(names, counts, strict=True) if count]
        taken = on.take_of_people([], 0, (rate, burst), people)
        assert taken is not None
        assert [math.ceil(wait) for wait in taken[1]] == [alone.wait(name) for name, _ in people]
        for (name, count), wait in zip(people, taken[1], strict=True):
            if not wait:
                alone.charge(name, count)


def test_of_people_nobody_is_counted_where_the_request_has_to_wait(redis: RedisProcess) -> None:
    on, _ = limits(redis)
    full, person, ada = (next(fresh), 0.01, 1), (0.01, 1), (next(fresh), 1)
    assert on.take([full], 1) == 0
    assert on.take_of_people([full], 1, person, [ada]) == (pytest.approx(100.0), [])
    assert on.take_of_people([], 0, person, [ada]) == (0, [0])


def test_nothing_is_counted_where_everybody_has_to_wait_and_for_the_others_where_somebody_has(
    redis: RedisProcess,
) -> None:
    on, _ = limits(redis)
    wide, person, ada, bob = (next(fresh), 0.01, 2), (0.01, 1), (next(fresh), 1), (next(fresh), 1)
    assert on.take_of_people([wide], 1, person, [ada]) == (0, [0])
    for _ in range(9):
        assert on.take_of_people([wide], 1, person, [ada]) == (0, [pytest.approx(100.0)])
    assert on.take_of_people([wide], 1, person, [ada, bob]) == (0, [pytest.approx(100.0), 0])
    assert on.take([wide], 1) != 0


def test_of_more_people_than_are_asked_for_at_once_the_same_holds(redis: RedisProcess) -> None:
    on, _ = limits(redis)
    person, over = (0.01, 1), [(next(fresh), 1) for _ in range(2 * PEOPLE_AT_ONCE)]
    anybody, narrow, wide = (next(fresh), 1), (next(fresh), 0.01, 1), (next(fresh), 0.01, 2)
    assert on.take_of_people([], 0, person, over) == (0, [0] * len(over))
    assert on.take([narrow], 1) == 0
    assert on.take_of_people([narrow], 1, person, [*over, anybody]) == (pytest.approx(100.0), [])
    for _ in range(3):
        assert on.take_of_people([wide], 1, person, over) == (0, [pytest.approx(100.0)] * len(over))
    waits = on.take_of_people([wide], 1, person, [*over, anybody])
    assert waits == (0, [*[pytest.approx(100.0)] * len(over), 0])
    assert on.take([wide], 1) == 0, "the request was counted once, however often it was asked about"
    assert on.take([wide], 1) != 0


def test_a_person_is_forgotten_once_nothing_is_owed(redis: RedisProcess) -> None:
    name = next(fresh)
    RedisLimits(redis.url, TIMEOUT).take_of_people([], 0, (0.01, 10), [(name, 20)])
    left = int(redis.command("PTTL", f"threadline:limit:{name}").decode().strip(":\r\n"))
    assert 1_900_000 < left <= 2_001_000


def test_processes_that_come_at_once_share_one_count(redis: RedisProcess) -> None:
    name, passed = next(fresh), []
    each = [RedisLimits(redis.url, TIMEOUT) for _ in range(4)]

    def take(on: RedisLimits) -> None:
        passed.extend(on.take([(name, 0.01, 50)], 1) for _ in range(40))

    at_once(*[partial(take, on) for on in each])
    assert passed.count(0.0) == 50
    assert None not in passed


def test_a_name_is_forgotten_when_its_window_is_over(redis: RedisProcess) -> None:
    name = next(fresh)
    RedisLimits(redis.url, TIMEOUT).take([(name, 0.01, 10)], 1)
    left = int(redis.command("PTTL", f"threadline:limit:{name}").decode().strip(":\r\n"))
    assert 900_000 < left <= 1_001_000


def test_without_redis_it_says_so_at_once_and_comes_back(caplog: pytest.LogCaptureFixture, redis: RedisProcess) -> None:
    now = [0.0]
    on = RedisLimits(redis.url, TIMEOUT, retry_seconds=5.0, seconds=lambda: now[0])
    name = next(fresh)
    redis.kill()
    with caplog.at_level(logging.WARNING, "threadline.cache"):
        assert on.take([(name, 0.001, 1)], 1) is None
        assert on.take([(name, 0.001, 1)], 1) is None
    assert len(caplog.records) == 1
    redis.start()
    assert on.take([(name, 0.001, 1)], 1) is None
    now[0] = 5.0
    assert on.take([(name, 0.001, 1)], 1) == 0.0
    assert on.take([(name, 0.001, 1)], 1) != 0.0


@pytest.mark.parametrize("events", [1, 40])
def test_after_a_step_back_of_the_clock_nobody_waits_longer_than_a_window(redis: RedisProcess, events: int) -> None:
    on, clock = limits(redis)
    source, person = (next(fresh), 0.01, 5), next(fresh)
    for _ in range(5):
        on.take_of_people([source], events, (0.01, 5), [(person, events)])
    clock.now -= 3 * DAY
    for _ in range(5):
        assert on.take_of_people([source], 1, (0.01, 5), [(person, 1)]) == (0.0, [0.0])
    assert (on.take([source], 1) or 0) > 0
