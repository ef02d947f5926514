"""Differences between arms that may be looked at as often as one likes, and whether people came in the shares meant.

The interval is an asymptotic confidence sequence, of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas: Time-uniform
central limit theory and asymptotic confidence sequences (Annals of Statistics, 2024), tuned as they do. It is the
mixture SPRT of Johari, Koomen, Pekelis and Walsh (Peeking at A/B tests, KDD 2017) turned round, with the variance
estimated. Sample ratio: Fabijan et al., Diagnosing sample ratio mismatch (KDD 2019).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from threadline.capabilities.ask.analytics.libraries import numbers

MISMATCH_BELOW = 0.001
"""The chance of shares as far off as these, below which assignment is not to be trusted. It is so small because
somebody looks again and again."""


class Sample(NamedTuple):
    """What an arm measured."""

    people: int
    mean: float
    variance: float
    """Of a person's value, with n - 1 below the line."""


class Difference(NamedTuple):
    """An arm against the control."""

    estimate: float
    low: float
    high: float
    p: float
    """Always valid: how seldom, over all looks, chance alone is as far from 0."""


def difference(arm: Sample, control: Sample, confidence: float, planned: int) -> Difference | None:
    """The difference of two means; None while an arm has fewer than two people, or no two values differ.

    ``planned``: people of both arms at whom the interval is to be tightest, chosen without a look at the data.
    """
    if min(arm.people, control.people) < 2:
        return None
    variance = arm.variance / arm.people + control.variance / control.people
    if variance <= 0:
        return None
    people, alpha = arm.people + control.people, 1 - confidence
    rho2 = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / planned
    grown = people * rho2 + 1
    estimate = arm.mean - control.mean
    radius = math.sqrt(variance * grown / (people * rho2) * (math.log(grown) - 2 * math.log(alpha)))
    # 1 / p is the likelihood ratio of the mixture.
    p = math.exp(min(0.0, math.log(grown) / 2 - people * rho2 * estimate**2 / (2 * variance * grown)))
    return Difference(estimate, estimate - radius, estimate + radius, p)


def ratio_p(people: Sequence[int], weights: Sequence[float]) -> float:
    """The chance of numbers as far from these shares, by chi-square; 1 for a single arm."""
    total, whole = sum(people), sum(weights)
    if len(people) < 2 or not total:
        return 1.0
    expected = [total * weight / whole for weight in weights]
    chi_square = sum((count - meant) ** 2 / meant for count, meant in zip(people, expected, strict=True))
    return float(numbers("scipy.special").chdtrc(len(people) - 1, chi_square))


def shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights as shares of 1."""
    whole = sum(weights.values())
    return {name: weight / whole for name, weight in weights.items()}
