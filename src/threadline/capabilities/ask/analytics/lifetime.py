"""How often people will buy, whether they still do, and for how much: BG/NBD and Gamma-Gamma, by maximum likelihood.

Fader, Hardie and Lee: "Counting your customers" the easy way (2005); Fader and Hardie: The Gamma-Gamma model (2013).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from threadline.capabilities.ask.analytics.libraries import numbers
from threadline.kernel.errors import InvalidValue

REPEATERS_MIN = 10
"""People who bought more than once, of whom a fit needs as many."""
_REACH, _STEP = 8.0, 0.05
"""Of the trapezoids, as the inverse hyperbolic sine of logits: 1,490 to either side, densely where the density is."""


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
    log_odds = np.log(a) - np.log(np.where(x > 0, b + x - 1, 1)) + (r + x) * np.log1p((t - t_x) / (alpha + t_x))
    alive = special.expit(np.where(x > 0, -log_odds, np.inf))
    histories, of = np.unique(np.column_stack((x, t)), axis=0, return_inverse=True)
    return Forecast(alive, alive * _if_alive(model, histories[:, 0], histories[:, 1], ahead)[np.ravel(of)])


def _if_alive(model: Purchases, x: Any, t: Any, ahead: float) -> Any:
    """Purchases to expect of those who have not left: the mean of (1 - (1 + w u)^-(r + x)) / u over u, beta of ``a``
    and ``b + x``, where w is the time ahead as a share of what has passed.

    That is equation 10 of the paper with its hypergeometric function as an integral: the closed form multiplies, of
    somebody who buys daily, a power below 1e-308 by a sum above 1e308. By trapezoids over the logit of u, dense about
    the density's mode: in logarithms nothing overflows, and all terms are positive, so that nothing cancels either.
    """
    np, special = numbers("numpy"), numbers("scipy.special")
    r, alpha, a, b = model
    b, w = b + x, ahead / (alpha + t)
    mode, scale, whole = np.log(a / b), np.minimum(1, np.sqrt(1 / a + 1 / b)), special.betaln(a, b)
    expected = np.zeros(len(x))
    for node in np.arange(-_REACH, _REACH, _STEP):
        logit = mode + scale * np.sinh(node)
        log_u, log_rest = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        density = np.exp(a * log_u + b * log_rest - whole) * scale * np.cosh(node) * _STEP
        u = np.exp(np.maximum(log_u, -640))  # which a float still has
        expected += density * -np.expm1(-(r + x) * np.log1p(w * u)) / u
    return expected


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
