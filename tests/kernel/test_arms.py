"""Arms by hash: the draws that stores have from before, shares and weights."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.kernel.arms import WHOLE, arm_at, draw, is_within


@pytest.mark.parametrize(
    ("key", "drawn"),
    [
        (("broadcast", "holdout", "spring", "0" * 32), 176_907_597_185_647),
        (("journey", "0" * 32, "welcome", ""), 216_768_494_619_874),
    ],
)
def test_a_draw_is_the_one_that_earlier_versions_stored(key: tuple[str, ...], drawn: int) -> None:
    assert draw(*key) == drawn


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=8), st.integers(0, WHOLE - 1))
def test_an_arm_has_the_draws_between_the_weights_before_it_and_its_own(weights: list[int], drawn: int) -> None:
    position = arm_at(weights, drawn)
    point = Fraction(drawn, WHOLE) * sum(weights)
    assert sum(weights[:position]) <= point < sum(weights[: position + 1])


@pytest.mark.parametrize(("share", "ends"), [(1 / WHOLE, 1), (0.25, WHOLE // 4), (1.0, WHOLE)])
def test_a_share_ends_where_the_rest_begins(share: float, ends: int) -> None:
    assert is_within(share, ends - 1)
    assert not is_within(share, ends)
    assert not is_within(0.0, 0)


def test_people_are_spread_by_the_weights_of_the_arms() -> None:
    counts = Counter(arm_at([1, 3], draw("made up", str(person))) for person in range(4_000))
    assert 900 < counts[0] < 1_100
