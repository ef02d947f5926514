"""Rate limits: a burst, a refill, debts that are paid, and a bounded memory."""

from __future__ import annotations

from threadline.surfaces.http import rate
from threadline.surfaces.http.rate import Buckets


class Seconds:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_what_comes_after_waits() -> None:
    seconds = Seconds()
    buckets = Buckets(2.0, 10, seconds)
    for _ in range(10):
        assert buckets.wait("a") == 0
        buckets.charge("a", 1)
    assert buckets.wait("a") == 1
    assert buckets.wait("b") == 0
    seconds.now = 0.5
    assert buckets.wait("a") == 0


def test_a_debt_is_waited_for() -> None:
    seconds = Seconds()
    buckets = Buckets(2.0, 10, seconds)
    buckets.charge("a", 30)
    assert buckets.wait("a") == 11  # 20 owed and one to have, at 2 a second
    seconds.now = 10.4
    assert buckets.wait("a") == 1
    seconds.now = 10.5
    assert buckets.wait("a") == 0


def test_no_more_than_a_burst_is_saved_up() -> None:
    seconds = Seconds()
    buckets = Buckets(100.0, 5, seconds)
    seconds.now = 1_000.0
    buckets.charge("a", 5)
    assert buckets.wait("a") == 1


def test_memory_is_bounded_and_forgets_those_who_sent_longest_ago() -> None:
    buckets = Buckets(0.001, 1, Seconds())
    buckets.charge("first", 1)
    for index in range(rate.NAMES_MAX):
        buckets.charge(f"n{index}", 1)
    assert len(buckets._levels) == rate.NAMES_MAX
    assert buckets.wait("first") == 0
    assert buckets.wait("n0") > 0


def test_a_rate_of_nothing_is_no_limit() -> None:
    assert not Buckets(0.0, 1).on
