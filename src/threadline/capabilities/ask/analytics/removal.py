"""What would be lost without a channel: removal effects in the Markov chain of the touches that people have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from threadline.capabilities.ask.analytics.libraries import numbers


class Move(NamedTuple):
    """How often people went from one channel to the next."""

    source: str | None
    """None: from the beginning."""
    target: str | None
    """None: to the end."""
    is_won: bool
    """Whether the way ended with a conversion."""
    times: int


def removal_effects(moves: Iterable[Move]) -> dict[str, float]:
    """The share of conversions that would not happen if whoever comes to a channel went away there.

    In the chain of first order: with N = (I - Q)^-1, the expected visits of each channel, the chance to come to channel
    c from the beginning is N[0, c] / N[c, c], and from there to a conversion it is N[c] · won.
    """
    np = numbers("numpy")
    moves = list(moves)
    names = sorted({move.source for move in moves if move.source is not None})
    index_of = {name: at for at, name in enumerate([None, *names])}
    going: Counter[str | None] = Counter()
    for move in moves:
        going[move.source] += move.times
    between, won = np.zeros((len(index_of), len(index_of))), np.zeros(len(index_of))
    for move in moves:
        share = move.times / going[move.source]
        if move.target is not None:
            between[index_of[move.source], index_of[move.target]] += share
        elif move.is_won:
            won[index_of[move.source]] += share
    visits = np.linalg.inv(np.eye(len(index_of)) - between)
    chance = visits @ won
    if not chance[0]:
        return dict.fromkeys(names, 0.0)
    return {
        name: float(visits[0, at] / visits[at, at] * chance[at] / chance[0]) for name, at in index_of.items() if name
    }
