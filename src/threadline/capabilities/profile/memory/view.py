"""What is known of a person at an instant: the facts that stand, each with its source, confidence and lineage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.capabilities.foundation.events.forms import instant
from threadline.capabilities.profile.memory.claims import (
    Claim,
    FactId,
    agreed,
    by_value,
    cause_of,
    split_id,
    voided,
)
from threadline.capabilities.profile.memory.definition import SOURCES
from threadline.capabilities.profile.memory.derivation import FactDerivation
from threadline.capabilities.profile.memory.fact_state import (
    COUNT,
    FIRST_AT,
    RETRACTED_FACTS,
    SORTED_OUT,
    TAIL,
    FactState,
    State,
    hash_of,
    standing,
)
from threadline.capabilities.profile.memory.folding import fold_of
from threadline.kernel.event import Recorded
from threadline.kernel.limits import FACT_EVENTS_MAX
from threadline.kernel.projection import Edge

FactStates = dict[FactId, list[tuple[FactDerivation, str, FactState]]]
"""The pieces of each fact: who made it, the name of the part, and what is kept."""


class Reader:
    """Reads states that these makers folded."""

    def __init__(self, makers: Mapping[str, list[FactDerivation]]) -> None:
        self._makers = makers
        self._types = frozenset(makers)
        self._by_code = {maker.code: maker for listed in makers.values() for maker in listed}

    def view(self, state: State, now: int, events: list[Recorded]) -> dict[str, Any]:
        """``{type: {key: fact}, …, "retracted": […]}``, without expired and void facts."""
        pieces, retracted = self._sorted_out(state)
        self._refold(pieces, retracted, events)
        self._pass_over(pieces, state, now)
        claimed: dict[FactId, list[Claim]] = {}
        for fact, derived in pieces.items():
            if len(derived) == 1:  # as nearly always
                claimed[fact] = derived[0][0].claims(derived[0][2])
            else:
                claimed[fact] = [claim for maker, _, piece in derived for claim in maker.claims(piece)]
        bounds = voided(claimed, {fact: entry[0] for fact, entry in retracted.items()}, now)
        shown: dict[str, Any] = {}
        gone = set(retracted)
        for fact in sorted(claimed):
            living = [claim for claim in claimed[fact] if claim.expires_at is None or claim.expires_at > now]
            known = [claim for claim in living if cause_of(claim, bounds) is None] if bounds else living
            if known:
                shown.setdefault(fact[0], {})[fact[1]] = _fact(fact, known, pieces[fact])
            elif living:
                gone.add(fact)
        return {**shown, "retracted": [_taken(fact, retracted.get(fact), bounds[fact]) for fact in sorted(gone)]}

    def edges(self, state: State, now: int) -> list[Edge]:
        """From the earliest retraction on that newer events followed: what they alone make is folded from the log."""
        if RETRACTED_FACTS not in state:
            return []  # as with nearly everybody
        pieces, retracted = self._sorted_out(state)
        starts = [
            entry[0]
            for fact, entry in retracted.items()
            if any(piece[TAIL][0] > entry[0] for _, _, piece in pieces.get(fact, ()))
        ]
        return [Edge(min(starts) + 1, now, self._types)] if starts else []

    def due(self, state: State, now: int) -> int | None:
        """The next instant after ``now`` at which a claim expires."""
        pieces, retracted = self._sorted_out(state)
        expiries = [
            claim.expires_at
            for fact, derived in pieces.items()
            for maker, _, piece in derived
            for claim in maker.claims(piece)
            if claim.expires_at is not None and claim.expires_at > now
            if fact not in retracted or claim.at > retracted[fact][0]
        ]
        return min(expiries, default=None)

    def _sorted_out(self, state: State) -> tuple[FactStates, dict[FactId, list[Any]]]:
        """The pieces by fact, and of each fact with a standing retraction its newest one."""
        pieces: FactStates = {}
        retracted: dict[FactId, list[Any]] = {}
        for code, part in state.items():
            if code == RETRACTED_FACTS:
                fact_view = {split_id(id): standing(entries) for id, entries in part.items()}
                retracted = {fact: last for fact, last in fact_view.items() if last is not None}
                continue
            if code == SORTED_OUT:
                continue
            maker = self._by_code[code]
            for name, piece in maker.pieces(part).items():
                pieces.setdefault(maker.fact(name), []).append((maker, name, piece))
        for derived in pieces.values():
            if len(derived) > 1:
                derived.sort(key=lambda pair: pair[0].derivation.name)
        return pieces, retracted

    def _pass_over(self, pieces: FactStates, state: State, now: int) -> None:
        """Leave as many facts as may be shown of those not expired: by the hashes of their keys."""
        for maker in self._by_code.values():
            most = maker.derivation.most
            if not maker.room or len(state.get(maker.code, ())) <= most:
                continue
            of_maker = [
                (name, fact)
                for fact, derived in pieces.items()
                for other, name, piece in derived
                if other.code == maker.code and _living(maker, piece, now)
            ]
            of_maker.sort(key=lambda named: hash_of(named[0]))
            for _, fact in of_maker[most:]:
                pieces[fact] = [item for item in pieces[fact] if item[0].code != maker.code]
                if not pieces[fact]:
                    del pieces[fact]

    def _refold(self, pieces: FactStates, retracted: Mapping[FactId, list[Any]], events: list[Recorded]) -> None:
        """Leave of each retracted fact what the events after its retraction make of it.

        Counts and sums cannot give back what came before, so these few events are folded once more.
        """
        for fact, (at, _, _) in retracted.items():
            refolded = []
            for maker, name, piece in pieces.pop(fact, ()):
                if piece[FIRST_AT] > at:
                    refolded.append((maker, name, piece))
                elif piece[TAIL][0] > at:
                    fresh: State = {}
                    for recorded in events:
                        if recorded.event.occurred_at > at:
                            for other in self._makers.get(recorded.event.type, ()):
                                if other.code == maker.code:
                                    fold_of(other, sorting=False)(fresh, recorded)
                    made = maker.pieces(fresh[maker.code]) if fresh else {}
                    if name in made:
                        refolded.append((maker, name, made[name]))
            if refolded:
                pieces[fact] = refolded


def _living(maker: FactDerivation, piece: FactState, now: int) -> list[Claim]:
    """What a piece says that has not expired."""
    return [claim for claim in maker.claims(piece) if claim.lives(now)]


def _fact(fact: FactId, claims: list[Claim], pieces: list[tuple[FactDerivation, str, FactState]]) -> dict[str, Any]:
    wins, *others = by_value(claims)
    if len(pieces) == 1:
        piece = pieces[0][2]
        ids, events, first = piece[TAIL][1::2], piece[COUNT], piece[FIRST_AT]
    else:
        tails = [piece[TAIL] for _, _, piece in pieces]
        newest = sorted({pair for tail in tails for pair in zip(tail[::2], tail[1::2], strict=True)}, reverse=True)
        ids = [id for _, id in newest[:FACT_EVENTS_MAX]]
        events = sum(piece[COUNT] for _, _, piece in pieces)
        first = min(piece[FIRST_AT] for _, _, piece in pieces)
    return {
        "type": fact[0],
        "key": fact[1],
        **_stated(wins),
        "events": events,
        "source_event_ids": ids,
        "created_at": instant(first),
        "conflicts": [_stated(other) for other in others],
    }


def _stated(claims: list[Claim]) -> dict[str, Any]:
    """What claims that agree say together."""
    newest = claims[0]
    until, voices = newest.expires_at, [newest.voice] if newest.voice else []
    if len(claims) > 1:
        newest = max(claims, key=lambda claim: (claim.at, claim.id))
        # The value stands as long as one of them does.
        expiries = [claim.expires_at for claim in claims if claim.expires_at is not None]
        until = max(expiries) if len(expiries) == len(claims) else None
        voices = sorted({claim.voice for claim in claims if claim.voice})
    return {
        "value": newest.value,
        "source": SOURCES[newest.strength],
        "confidence": agreed(claims),
        "updated_at": instant(newest.at),
        "expires_at": None if until is None else instant(until),
        "voices": voices,
    }


def _taken(fact: FactId, own: list[Any] | None, bound: tuple[int, FactId]) -> dict[str, Any]:
    """A fact with a standing retraction of its own, or one that went with another."""
    return {
        "type": fact[0],
        "key": fact[1],
        "retraction": "" if own is None else own[1],
        "retracted_at": instant(bound[0] if own is None else own[0]),
        "because_of": "" if own is not None else "/".join(bound[1]),
    }
