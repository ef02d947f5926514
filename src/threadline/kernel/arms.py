"""Arms by hash: which share of people, and which arm of an experiment, somebody is in, always the same for one key."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.kernel.ids import short_hash

WHOLE = 1 << 48
"""Everybody: draws are evenly spread over the numbers below it."""


def draw(*key: str) -> int:
    """The draw of a key, such as ``("broadcast", "holdout", id, person)``: it says what is drawn, and for whom.

    Keys that differ in one part are drawn independently: who is in one holdout is in another by chance.
    """
    return int(short_hash(*key)[:12], 16)


def is_within(share: float, drawn: int) -> bool:
    """Whether a draw lies in the first ``share``, 0 to 1, of everybody."""
    return drawn < share * WHOLE


def arm_at(weights: Sequence[int], drawn: int) -> int:
    """The position of the arm that a draw falls into, of arms with these weights."""
    point = drawn * sum(weights)
    for position, weight in enumerate(weights):
        point -= weight * WHOLE
        if point < 0:
            return position
    return len(weights) - 1
