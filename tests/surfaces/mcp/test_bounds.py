"""Bounded answers: never too long, and whoever follows what is missing has the whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.surfaces.mcp.mcp_stage import join
from threadline.kernel.errors import InvalidValue, LimitExceeded
from threadline.surfaces.mcp.bounds import SHARE_MIN, Cut, bounded, part, size

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=1_200),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=40), inner, max_size=12),
    max_leaves=25,
)
PIECES_MAX = 10_000


def _followed(value: Any, size_max: int) -> Any:
    """The whole again, of as many answers as it takes. Knows nothing of how an answer was cut."""
    shown, cuts = bounded(value, size_max)
    assert size(shown) <= size_max
    whole, waiting = [shown], list(cuts)
    for _ in range(PIECES_MAX):
        if not waiting:
            return whole[0]
        cut = waiting.pop(0)
        piece, more = bounded(part(value, cut.at, cut.start), size_max, cut.at, cut.start)
        assert size(piece) <= size_max
        join(whole, cut.at, piece)
        waiting += more
    raise AssertionError("it does not come to an end")


@given(VALUES, st.integers(2 * SHARE_MIN, 8 * SHARE_MIN))
def test_following_what_is_missing_gives_the_whole(value: Any, size_max: int) -> None:
    assert _followed(value, size_max) == value


@given(VALUES)
def test_what_fits_is_shown_whole(value: Any) -> None:
    assert bounded(value, size(value)) == (value, [])


def test_a_long_list_is_cut_after_its_first_elements() -> None:
    value = {"people": [{"id": number} for number in range(1_000)], "next": "x"}
    shown, cuts = bounded(value, 2_000)
    assert shown["next"] == "x"
    assert shown["people"] == value["people"][: len(shown["people"])]  # type: ignore[index]
    assert cuts == [Cut("/people", len(shown["people"]), 1_000)]


def test_a_large_member_does_not_crowd_out_the_others() -> None:
    shown, cuts = bounded({"html": "x" * 100_000, "subject": "y" * 900}, 4_000)
    assert shown["subject"] == "y" * 900
    assert [cut.at for cut in cuts] == ["/html"]


def test_a_name_longer_than_an_answer_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="a name in this answer"):
        bounded({"x" * 5_000: "y" * 5_000}, 2_000)


@pytest.mark.parametrize(("at", "start"), [("/none", 0), ("people", 0), ("/people/7", 0), ("/people", 3), ("/next", 9)])
def test_a_part_that_is_not_there_is_refused(at: str, start: int) -> None:
    with pytest.raises(InvalidValue):
        part({"people": [1, 2, 3], "next": "x"}, at, start)
