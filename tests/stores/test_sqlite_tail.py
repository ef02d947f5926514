"""The tail of the log in memory: what a reader sees of it, and when it lets go."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import tracemalloc
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from threadline.stores.sqlite.tail import AFTER_ALL, BEFORE_ALL, BUCKETS, ERASED, Generation, IndexRow, Place, Tail

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


def test_what_was_added_and_erased_is_that_of_plain_dicts_in_every_question(seed: int) -> None:
    random = Random(seed)
    for entries_max in (4, 100, 1_000):
        tail, threads = Tail(entries_max), [random.randbytes(16) for _ in range(12)]
        ids: dict[bytes, tuple[int, int]] = {}
        places: dict[int, tuple[bytes, Place]] = {}
        noted: list[IndexRow] = []
        while len(noted) < 1_200:
            first = len(noted) + 1
            new: list[IndexRow] = []
            for position in range(first, first + random.randint(1, 40)):
                # The first thread has half of all: far more than are sorted when they are asked for.
                thread = random.choice((threads[0], random.choice(threads), ERASED))
                at, type, id, digest = random.randint(-50, 50), random.randint(0, 3), random.randbytes(16), position * 7
                new.append((position, thread, position % 9, at, type, id, digest))
                ids[id] = position, digest
                if thread != ERASED:
                    places[position] = thread, (at, position % 9, type, position)
            tail.add(new)
            noted += new
            if random.random() < 0.2:
                gone = random.sample(noted, random.randint(1, 5))
                tail.drop(gone)
                for position, *_, id, _ in gone:
                    ids[id] = position, 0
                    places.pop(position, None)
        view = tail.view()
        assert {id: view.find(id) for id in ids} == ids
        assert [view.find(random.randbytes(16)) for _ in range(200)] == [None] * 200
        for thread in [*threads, random.randbytes(16)]:
            expected = sorted(place for owner, place in places.values() if owner == thread)
            start, stop = sorted((random.randint(-50, 50), random.randint(-50, 50)))
            for reverse in (False, True):
                of_all = view.places(thread, (start,), (stop,), reverse=reverse)
                assert sorted(of_all) == [place for place in expected if start <= place[0] < stop]
            for generation in view.generations:
                assert list(generation.places(thread, BEFORE_ALL, AFTER_ALL, reverse=True)) == sorted(
                    (place for place in expected if place[3] in _positions(generation)), reverse=True
                )
        moved = [generation.bucket(number) for generation in view.generations for number in range(BUCKETS)]
        assert sorted(row for by_id, _ in moved for row in by_id) == sorted((id, at) for id, (at, _) in ids.items())
        by_thread = sorted(row for _, part in moved for row in part)
        assert by_thread == sorted((thread, *place) for thread, place in places.values())


def _positions(generation: Generation) -> range:
    return range(generation.last - generation.count + 1, generation.last + 1)


def test_an_id_that_is_not_there_is_never_mistaken_for_one_that_is_just_added(seed: int) -> None:
    tail, stop, random = Tail(1_000_000), threading.Event(), Random(seed)
    absent = [random.randbytes(16) for _ in range(2_000)]

    def add() -> None:
        for n in itertools.count(1):
            if stop.is_set():
                return
            tail.add([(n, n.to_bytes(16, "little"), n, n, 1, n.to_bytes(16, "little"), 0)])

    writer, interval = threading.Thread(target=add), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    writer.start()
    try:
        for _ in range(20):
            generation = tail.view().generations[0]
            assert [id for id in absent if generation.find(id) is not None] == []
            assert [id for id in absent if list(generation.places(id, BEFORE_ALL, AFTER_ALL))] == []
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        writer.join()


def test_entries_take_a_hundred_bytes_each_and_are_nothing_to_the_garbage_collector() -> None:
    random = Random(7)
    tail, people = Tail(65_536), [random.randbytes(16) for _ in range(5_000)]
    news = [(n, random.choice(people), n, n, 1, random.randbytes(16), n) for n in range(1, 40_001)]
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    try:
        for first in range(0, len(news), 100):
            tail.add(news[first : first + 100])
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 120 * len(news)
    assert len(gc.get_objects()) - objects < 1_000
