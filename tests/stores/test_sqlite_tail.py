"""The tail of the log in memory: what a reader sees of it, and when it lets go."""

from __future__ import annotations

import itertools
import sys
import threading
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from threadline.stores.sqlite.tail import AFTER_ALL, BUCKETS, IndexRow, Tail

THREAD = b"\x07" * 16


def row(position: int) -> IndexRow:
    return (position, THREAD, position, -position, 1, bytes([position % 256]) * 16, position * 3)


def rows(first: int, stop: int) -> list[IndexRow]:
    return [row(position) for position in range(first, stop)]


def test_a_view_does_not_show_what_is_added_later() -> None:
    tail = Tail(100)
    tail.add(rows(1, 4))
    view = tail.view()
    tail.add(rows(4, 6))
    assert [place[3] for place in view.places(THREAD)] == [3, 2, 1]
    assert view.find(row(4)[5]) is None
    assert view.find(row(3)[5]) == (3, 9)
    assert [place[3] for place in tail.view().places(THREAD)] == [5, 4, 3, 2, 1]
    assert {place[3] for place in view.extended(rows(4, 5)).places(THREAD)} == {1, 2, 3, 4}


def test_what_is_moved_is_moved_whole_before_the_next_generation_is_full() -> None:
    tail = Tail(50)
    position, moved = 1, set[int]()
    while position < 1_000:
        before = tail.moving
        buckets = tail.next_buckets(3)
        moved |= {place for bucket in buckets for _, place in before.bucket(bucket)[0]}
        if buckets:
            tail.moved(buckets)
        tail.add(rows(position, position + 3))
        position += 3
        assert len(tail.view().generations) <= 2
        held = {place[3] for place in tail.view().places(THREAD)}
        assert held | moved == set(range(1, position))
        assert len(held) <= 2 * 50 + 3


def test_what_has_left_takes_no_memory_for_long() -> None:
    tail = Tail(1_000)

    def live_through(first: int, stop: int) -> int:
        for position in range(first, stop, 10):
            if buckets := tail.next_buckets(10):
                tail.moved(buckets)
            tail.add(rows(position, position + 10))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        three = live_through(1, 3_000)
        thirty = live_through(3_001, 30_000)
    finally:
        tracemalloc.stop()
    assert thirty < 2 * three


def test_buckets_come_in_the_order_of_their_keys() -> None:
    tail = Tail(1)
    tail.add([(n, bytes([255 - n, n]) * 8, n, n, 1, bytes([n * 37 % 256, n]) * 8, 0) for n in range(1, 200)])
    moving = tail.moving
    ids = [id for number in range(BUCKETS) for id, _ in moving.bucket(number)[0]]
    threads = [place[0] for number in range(BUCKETS) for place in moving.bucket(number)[1]]
    assert len(ids) == len(threads) == 199
    assert ids == sorted(ids)
    assert threads == sorted(threads)


def test_a_follower_lets_go_of_what_the_writer_has_indexed() -> None:
    tail = Tail(10)
    for first in range(1, 101, 10):
        tail.add(rows(first, first + 10))
    assert len(tail.view().generations) == 11
    tail.forget(75)
    assert sorted(place[3] for place in tail.view().places(THREAD)) == list(range(71, 101))


TIMES = st.integers(0, 20)
BOUNDS = st.tuples() | st.tuples(TIMES) | st.tuples(TIMES, TIMES)


@given(
    st.lists(st.tuples(TIMES, st.integers(1, 3)), max_size=60),
    st.integers(1, 12),
    BOUNDS,
    BOUNDS | st.just(AFTER_ALL),
    st.sets(st.integers(1, 3)),
    st.integers(1, 10),
    st.booleans(),
)
def test_places_are_those_between_the_bounds_from_their_first_on(
    told: list[tuple[int, int]],
    entries_max: int,
    start: tuple[int, ...],
    stop: tuple[int, ...],
    types: set[int],
    limit: int,
    reverse: bool,
) -> None:
    tail = Tail(entries_max)
    held = [(at, n, type, n) for n, (at, type) in enumerate(told, 1)]
    for at, n, type, _ in held:
        tail.add([(n, THREAD, n, at, type, n.to_bytes(16), 0)])
    wanted = [place for place in held if start <= place < stop and (not types or place[2] in types)]
    found = tail.view().places(THREAD, start, stop, types=types, limit=limit, reverse=reverse)
    assert sorted(found, reverse=reverse)[:limit] == sorted(wanted, reverse=reverse)[:limit]
    assert len(found) <= limit * len(tail.view().generations)
    assert sorted(tail.view().places(THREAD)) == sorted(held)


def test_places_are_whole_while_another_thread_puts_some_in() -> None:
    tail = Tail(1_000_000)
    tail.add([(n, THREAD, n, 10 * n, 1, n.to_bytes(16), 0) for n in range(1, 2_001)])
    view, stop = tail.view(), threading.Event()

    def put_in_front() -> None:
        for n in itertools.count(2_001):
            if stop.is_set():
                return
            tail.add([(n, THREAD, n, 5, 1, n.to_bytes(16), 0)])

    writer, interval = threading.Thread(target=put_in_front), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    writer.start()
    try:
        for _ in range(5_000):
            found = view.places(THREAD, (10_000,), (10_050,))
            assert [position for _, _, _, position in found] == [1_000, 1_001, 1_002, 1_003, 1_004]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        writer.join()
