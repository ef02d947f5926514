"""Sorting out: which facts stay where there are too many of a derivation whose facts expire.

Those that have expired go first, so that nobody is remembered by what is over. What has expired depends on when: the
instant of the event that was one too many. So the fold is ordered, and `in_place` says of a late event that what was
sorted out does not depend on it. More are kept than are told, so that this is seldom done at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from threadline.capabilities.profile.memory.derivation import FactDerivation
from threadline.capabilities.profile.memory.events import FACT_RESTORED, FACT_RETRACTED
from threadline.capabilities.profile.memory.fact_state import (
    RETRACTED_FACTS,
    SORTED_OUT,
    TAIL,
    FactStates,
    State,
    hash_of,
    standing,
)
from threadline.kernel.event import Recorded

RETRACTIONS = frozenset({FACT_RETRACTED, FACT_RESTORED})


def sort_out(maker: FactDerivation, state: State, pieces: FactStates, at: int) -> None:
    """Leave as many facts as may stay of those that live at an instant, by the hashes of their keys.

    What has expired goes, then what was taken back; of the latter as many stay as there is room for, and some in any
    case, so that a retraction can be undone.
    """
    most = maker.derivation.most
    retractions = state.get(RETRACTED_FACTS, {})
    living: list[str] = []
    taken_back: list[str] = []
    for name in sorted(pieces, key=hash_of):
        piece = pieces[name]
        if all(claim.expires_at is not None and claim.expires_at <= at for claim in maker.claims(piece)):
            continue
        retraction = standing(retractions.get("/".join(maker.fact(name)), []))
        gone = retraction is not None and retraction[0] >= piece[TAIL][0]
        (taken_back if gone else living).append(name)
    remaining = {*living[:most], *taken_back[: max(most - len(living), most // 8)]}
    for name in [name for name in pieces if name not in remaining]:
        del pieces[name]
    state[SORTED_OUT] = {**_sorted_at(state), maker.code: at}


def in_place(makers: Mapping[str, list[FactDerivation]], state: State, recorded: Recorded) -> bool:
    """Whether a late event may be folded as it is: nothing was sorted out since it occurred, nor is because of it."""
    event, sorted_at = recorded.event, _sorted_at(state)
    if event.type in RETRACTIONS:
        return all(at < event.occurred_at for at in sorted_at.values())
    for maker in makers.get(event.type, ()):
        if not maker.room or not maker.where.test(event):
            continue
        made = {part for part, _ in maker.made(event)}
        if made and event.occurred_at <= sorted_at.get(maker.code, event.occurred_at - 1):
            return False
        pieces = state.get(maker.code, {})
        if len(pieces) + len(made - pieces.keys()) > maker.room:
            return False
    return True


def _sorted_at(state: State) -> dict[str, int]:
    """By derivation, when its facts were sorted out last."""
    sorted_at: dict[str, int] = state.get(SORTED_OUT, {})
    return sorted_at
