"""How far a look at people has come, and what a count among those who were looked at says of everybody."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from threadline.kernel.operation import Context
from threadline.kernel.time import SECOND

_Z = 1.959964
"""Half the width of an interval that has its value inside 95 times of 100, in standard deviations."""
_ID_DIGITS = 12
Seconds = Annotated[
    float,
    Meta(description="How long to look at people at most; what is found by then is the answer.", ge=0.1, le=30),
]


class Estimate(msgspec.Struct, kw_only=True):
    """How many people there are of a kind: exactly, or with the bounds that hold 95 times of 100."""

    people: int
    low: int
    high: int


class Sample(NamedTuple):
    """The people who were looked at: everybody, or those whose ids come first."""

    read: int
    share: float
    """Of all ids those up to the last one that was looked at: ids are hashes, so this share of everybody. 1: all."""

    def estimate(self, counted: int) -> Estimate:
        """What a count among them says of everybody.

        Each of M people is among those looked at with the probability `share`, so the count is binomial; the bounds are
        those M for which it is not too far off (a score interval).
        """
        if self.share >= 1:
            return Estimate(people=counted, low=counted, high=counted)
        share = self.share
        spread = _Z * _Z * share * (1 - share)
        middle = 2 * counted * share + spread
        half = math.sqrt(max(middle * middle - 4 * (counted * share) ** 2, 0.0))
        low, high = ((middle + sign * half) / (2 * share * share) for sign in (-1, 1))
        return Estimate(
            people=round(counted / share), low=max(math.floor(low), counted), high=max(math.ceil(high), counted)
        )


def sample(read: int, last: str) -> Sample:
    """The sample of so many people up to an id; empty: everybody was looked at."""
    if not last:
        return Sample(read, 1.0)
    return Sample(read, (int(last[:_ID_DIGITS], 16) + 1) / 16**_ID_DIGITS)


class Deadline:
    """When a look at people ends, by the clock of the engine."""

    def __init__(self, context: Context, seconds: float) -> None:
        self._clock = context.engine.recorder.clock
        self._until = self._clock() + round(seconds * SECOND)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._until
