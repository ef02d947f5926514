"""How often people will buy, whether they still do, and for how much: BG/NBD and Gamma-Gamma, by maximum likelihood.

Fader, Hardie and Lee: "Counting your customers" the easy way (2005); Fader and Hardie: The Gamma-Gamma model (2013).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from threadline.capabilities.analytics.libraries import numbers
from threadline.kernel.errors import InvalidValue

REPEATERS_MIN = 10
"""People who bought more than once, of whom a fit needs as many."""


class Purchases(NamedTuple):
    """How often (BG/NBD). Buying: gamma of shape ``r`` and rate ``alpha``; leaving: beta of ``a`` and ``b``."""

    r: float
    alpha: float
    a: float
    b: float


class Spending(NamedTuple):
    """How much (Gamma-Gamma). A purchase: gamma of shape ``p``, whose rate is gamma of shape ``q`` and rate ``v``."""

    p: float
    q: float
    v: float


class Forecast(NamedTuple):
    """For each person, as arrays."""

    alive: Any
    """The probability that they have not left."""
    expected: Any
    """Purchases to expect within the time ahead."""


def fit_purchases(x: Any, t_x: Any, t: Any) -> Purchases:
    """The parameters of people with so many repeat purchases, the last at ``t_x`` of ``t`` weeks since the first."""
    np, special = numbers("numpy"), numbers("scipy.special")
    # People of the same history are computed once.
    rows, weight = np.unique(np.column_stack((x, t_x, t)).astype(float), axis=0, return_counts=True)
    x, t_x, t = rows.T
    if weight[x > 0].sum() < REPEATERS_MIN:
        raise InvalidValue(
            f"a model needs at least {REPEATERS_MIN} people who bought on more than one day", param="event"
        )
    gammaln = special.gammaln

    def loss(logs: Any) -> float:
        r, alpha, a, b = np.exp(logs)
        start = gammaln(r + x) - gammaln(r) + r * np.log(alpha)
        start += gammaln(a + b) + gammaln(b + x) - gammaln(b) - gammaln(a + b + x)
        stays = -(r + x) * np.log(alpha + t)
        left = np.log(a) - np.log(np.where(x > 0, b + x - 1, 1)) - (r + x) * np.log(alpha + t_x)
        terms = start + np.where(x > 0, np.logaddexp(stays, left), stays)
        return float(-(weight * terms).sum() / weight.sum())

    return Purchases(*_minimum(loss, (0.5, float(np.mean(t)) / 4 + 0.1, 1.0, 2.0)))


def fit_spending(x: Any, m: Any) -> Spending:
    """The parameters of people whose ``x`` repeat purchases were worth ``m`` each on average."""
    np, special = numbers("numpy"), numbers("scipy.special")
    x, m = np.asarray(x, float), np.asarray(m, float)
    bought = (x > 0) & (m > 0)
    x, m = x[bought], m[bought]
    if len(x) < REPEATERS_MIN:
        raise InvalidValue(
            f"a model of values needs at least {REPEATERS_MIN} people with repeat purchases above 0", param="event"
        )
    gammaln = special.gammaln

    def loss(logs: Any) -> float:
        p, q, v = np.exp(logs)
        terms = gammaln(p * x + q) - gammaln(p * x) - gammaln(q) + q * np.log(v)
        terms += (p * x - 1) * np.log(m) + p * x * np.log(x) - (p * x + q) * np.log(x * m + v)
        return float(-terms.mean())

    return Spending(*_minimum(loss, (2.0, 2.0, float(m.mean()))))


def forecast(model: Purchases, x: Any, t_x: Any, t: Any, ahead: float) -> Forecast:
    """Whether people still buy, and how often they will within so many weeks."""
    np, special = numbers("numpy"), numbers("scipy.special")
    r, alpha, a, b = model
    x, t_x, t = (np.asarray(values, float) for values in (x, t_x, t))
    odds = np.where(x > 0, a / np.where(x > 0, b + x - 1, 1) * ((alpha + t) / (alpha + t_x)) ** (r + x), 0.0)
    share = 1 - ((alpha + t) / (alpha + t + ahead)) ** (r + x) * special.hyp2f1(
        r + x, b + x, a + b + x - 1, ahead / (alpha + t + ahead)
    )
    return Forecast(1 / (1 + odds), (a + b + x - 1) / (a - 1) * share / (1 + odds))


def average_value(model: Spending, x: Any, m: Any) -> Any:
    """What a purchase of each person will be worth: between their own average and everybody's."""
    np = numbers("numpy")
    x, m = np.asarray(x, float), np.asarray(m, float)
    p, q, v = model
    return p * (v + x * np.where(x > 0, m, 0)) / (p * x + q - 1)


def _minimum(loss: Any, start: tuple[float, ...]) -> list[float]:
    """Where a loss of logarithms is least: from a simplex that is begun anew until it stays where it is."""
    np, optimize = numbers("numpy"), numbers("scipy.optimize")
    logs, least = np.log(start), float("inf")
    for _ in range(10):
        options = {"xatol": 1e-7, "fatol": 1e-11, "maxiter": 3_000, "maxfev": 3_000}
        result = optimize.minimize(loss, logs, method="Nelder-Mead", options=options)
        logs, before, least = result.x, least, float(result.fun)
        if before - least < 1e-10:
            break
    if not np.isfinite(least) or np.abs(logs).max() > 12:
        raise InvalidValue(
            "no model of purchases fits these people; take a longer time, or another event", param="event"
        )
    return [float(number) for number in np.exp(logs)]
