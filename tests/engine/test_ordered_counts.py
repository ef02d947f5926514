"""Counts in order are what counting a sorted list gives."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.engine.reading import ordered_counts
from threadline.engine.reading.ordered_counts import OrderedCounts

numbers = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1))


def equal(counts: OrderedCounts, listed: list[int]) -> None:
    assert counts.total == len(listed)
    assert list(counts) == sorted(Counter(listed).items())
    assert len(counts) == len(set(listed))


@pytest.fixture(autouse=True, params=[2, 4, 512])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that they are cut and emptied all the time, and those of service."""
    monkeypatch.setattr(ordered_counts, "BLOCK_MAX", request.param)


@given(st.lists(st.tuples(numbers, st.integers(-3, 3)), max_size=80), st.lists(numbers, max_size=20))
def test_it_counts_like_a_sorted_list(changes: list[tuple[int, int]], asked: list[int]) -> None:
    counts, listed = OrderedCounts(), list[int]()
    for number, count in changes:
        counts.add(number, count)
        for _ in range(abs(count)):
            if count > 0:
                insort(listed, number)
            elif number in listed:
                listed.remove(number)
        for each in (number, *asked):
            assert counts.above(each) == len(listed) - bisect_right(listed, each)
            assert counts.count(each) == listed.count(each)
    equal(counts, listed)


@given(st.lists(numbers, max_size=200))
def test_made_at_once_it_is_the_same(listed: list[int]) -> None:
    counts = OrderedCounts(sorted(Counter(listed).items()))
    equal(counts, sorted(listed))
    for number in listed:
        assert counts.above(number) == sum(each > number for each in listed)


@pytest.mark.slow
def test_a_long_life(seed: int) -> None:
    random = Random(seed)
    counts, held = OrderedCounts(), Counter[int]()
    for turn in range(20_000):
        number = random.randrange(3_000) if turn < 12_000 else random.randrange(3)
        count = random.choice((1, 1, -1))
        counts.add(number, count)
        held[number] = max(0, held[number] + count)
        if turn % 1_000 == 0:
            assert counts.above(number) == sum(times for other, times in held.items() if other > number)
    assert list(counts) == sorted((number, times) for number, times in held.items() if times)
