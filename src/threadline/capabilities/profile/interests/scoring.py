"""What an action of some days ago is worth today, in integers, so that every machine answers the same bits."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

from threadline.kernel.time import DAY

PREVIOUS_FLOOR_TENTHS = 1
"""The previous period never weighs less than 0.1: dropping it at once would turn rankings over at the boundary."""

DECAY_BITS = 64
"""Weights of mode `decay` are integers of 2⁻⁶⁴."""

_WORK_BITS = 128
"""The width of the intermediate steps: their rounding stays far below the last bit of a weight."""


def period_weight(age: int, days_remaining: int, period_days: int) -> int:
    """The weight, in hundredths, of a period that lies ``age`` periods back.

    The current one (0) weighs 1.00, the one before it max(0.1, days remaining ÷ period length), and each one further
    back a tenth of the one after it; rounded to two decimals, half up.
    """
    if age == 0:
        return 100
    # max(0.1, remaining ÷ length) as a fraction over 10 × length.
    above = max(PREVIOUS_FLOOR_TENTHS * period_days, 10 * days_remaining)
    below: int = period_days * 10 ** min(age, 9)
    return (2 * 100 * above + below) // (2 * below)


@lru_cache(maxsize=8_192)
def decay_weight(age_days: int, half_life: int) -> int:
    """The weight 2^(−age ÷ half-life) of an action ``age_days`` whole days ago, in units of 2⁻⁶⁴, to within one.

    ``half_life`` is in microseconds. The result is made of integer products of square roots of ½, one for each binary
    digit of the exponent: no float and no library's power function has a say in it.
    """
    halvings, rest = divmod(age_days * DAY, half_life)
    if halvings > DECAY_BITS:
        return 0
    # The exponent's fraction, as 64 binary digits.
    digits = (rest << DECAY_BITS) // half_life
    weight = 1 << _WORK_BITS
    for position, root in enumerate(_roots(), start=1):
        if digits >> (DECAY_BITS - position) & 1:
            weight = weight * root >> _WORK_BITS
    return weight >> (_WORK_BITS - DECAY_BITS + halvings)


@lru_cache(maxsize=1)
def _roots() -> tuple[int, ...]:
    """2^(−1/2), 2^(−1/4), 2^(−1/8) …, each the square root of the one before."""
    roots = []
    root = 1 << (_WORK_BITS - 1)
    for _ in range(DECAY_BITS):
        root = isqrt(root << _WORK_BITS)
        roots.append(root)
    return tuple(roots)


def millionths(weight: int) -> int:
    """A sum of decayed weights as millionths, rounded half up."""
    return (weight * 1_000_000 + (1 << (DECAY_BITS - 1))) >> DECAY_BITS
