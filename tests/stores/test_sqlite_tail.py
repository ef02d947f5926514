"""The tail of the log in memory: what a reader sees of it, and when it lets go."""

from __future__ import annotations

from threadline.stores.sqlite_tail import BUCKETS, IndexRow, Tail

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
    assert [place[3] for place in view.places(THREAD)] == [1, 2, 3]
    assert view.find(row(4)[5]) is None
    assert view.find(row(3)[5]) == (3, 9)
    assert [place[3] for place in tail.view().places(THREAD)] == [1, 2, 3, 4, 5]
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
    assert [place[3] for place in tail.view().places(THREAD)] == list(range(71, 101))
