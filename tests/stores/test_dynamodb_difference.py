"""Differences between the values of an item: they give the value back, and reach as far as they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.stores.incompressible import noise
from threadline.stores.dynamodb.difference import BLOCK_BYTES, SHIFT_BYTES_MAX, difference, restored

_EDITS = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=40), st.integers(0, 40)), max_size=8)


@given(st.integers(0, 200_000), st.integers(0, 9), _EDITS)
def test_a_difference_gives_the_value_back(size: int, seed: int, edits: list[tuple[float, bytes, int]]) -> None:
    frame = noise(seed, size)
    value = frame
    for where, new, gone in edits:
        at = int(where * len(value))
        value = value[:at] + new + value[at + gone :]
    short = difference(value, frame)
    assert restored(short, frame) == value
    # What has not changed costs next to nothing, however large it is and however it has moved a little.
    assert len(short) < 1_000 + len(value) // 50


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_difference_from_anything_gives_the_value_back(value: bytes, frame: bytes) -> None:
    assert restored(difference(value * 99, frame * 99), frame * 99) == value * 99


def test_a_difference_reaches_as_far_as_it_says() -> None:
    frame = noise(1, 6 * BLOCK_BYTES)
    assert len(difference(noise(2, SHIFT_BYTES_MAX) + frame, frame)) < SHIFT_BYTES_MAX + 2_500
