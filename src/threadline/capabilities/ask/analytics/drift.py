"""How far two groups of people are apart in a feature: the population stability index, and what of it is chance.

Siddiqi: Credit Risk Scorecards (2006), where the index and its marks of 0.1 and 0.25 are from. Yurdakul and Naranjo:
Statistical properties of the population stability index (2020): without drift it is (1/n + 1/m) times chi-square with
one degree of freedom less than there are bins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.analytics.libraries import numbers

MODERATE, LARGE = 0.1, 0.25
CHANCE = 0.05
Verdict = Literal["within chance", "small", "moderate", "large"]


class Drift(msgspec.Struct, kw_only=True):
    """How far both sides are apart."""

    index: Annotated[float, Meta(description="The population stability index.")]
    chance: Annotated[float, Meta(description="What it stays below in 95 of 100 cases where nothing has drifted.")]
    bins: Annotated[int, Meta(description="Tenths of the baseline or texts, and people without a value.")]
    verdict: Annotated[Verdict, Meta(description="small: below 0.1; large: from 0.25 on.")]


def drift_of(counts: Sequence[tuple[int, int]]) -> Drift | None:
    """Of (compared, baseline) people by bin; None where a side has nobody. No share is 0: half a person is added to
    each bin."""
    sums = [sum(side) for side in zip(*counts, strict=True)] if counts else []
    if not all(sums) or not sums:
        return None
    index = 0.0
    for pair in counts:
        now, before = ((count + 0.5) / (total + len(counts) / 2) for count, total in zip(pair, sums, strict=True))
        index += (now - before) * math.log(now / before)
    chance = 0.0
    if len(counts) > 1:
        chance = float(numbers("scipy.special").chdtri(len(counts) - 1, CHANCE)) * (1 / sums[0] + 1 / sums[1])
    verdict: Verdict = "large" if index >= LARGE else "moderate" if index >= MODERATE else "small"
    if index <= chance:
        verdict = "within chance"
    return Drift(index=index, chance=chance, bins=len(counts), verdict=verdict)
