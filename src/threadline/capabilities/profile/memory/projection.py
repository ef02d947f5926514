"""The projection ``memory``: facts folded from the events that make them, read at any instant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from threadline.capabilities.profile.memory.definition import TYPES, DerivationSet
from threadline.capabilities.profile.memory.derivation import FactDerivation
from threadline.capabilities.profile.memory.eviction import RETRACTIONS, in_place
from threadline.capabilities.profile.memory.fact_state import State
from threadline.capabilities.profile.memory.folding import facts_made, fold_of_all, fold_retraction
from threadline.capabilities.profile.memory.merging import merge
from threadline.capabilities.profile.memory.paths import may_render
from threadline.capabilities.profile.memory.view import Reader
from threadline.kernel.event import Recorded
from threadline.kernel.names import hint
from threadline.kernel.projection import Depends, Faster, Fold, Projection

LAYOUT = 3
"""Grows when the form of the state changes, so that states of the older form are folded again."""

FactDerivations = dict[str, list[FactDerivation]]
"""Event type -> the derivations at work on it."""


def fact_derivations(derivations: DerivationSet) -> FactDerivations:
    """The derivations by event type. Codes are positions: whatever moves them changes the fingerprint as well."""
    by_type: FactDerivations = {}
    for number, derivation in enumerate(derivations.derivations):
        for feed in derivation.feeds:
            by_type.setdefault(feed.type, []).append(FactDerivation(derivation, feed, f"{number:x}"))
    return by_type


def projection(derivations: DerivationSet, by_type: FactDerivations) -> Projection:
    """The projection of these derivations.

    It commutes, since retractions void by occurred time, whatever came first, but for what is left out of too many
    facts that expire. That depends on when each occurred, so the projection is ordered; a late event is folded in place
    unless it may change that.
    """
    reader = Reader(by_type)
    types = frozenset(by_type) | RETRACTIONS

    folds: dict[str, Fold] = {type: fold_of_all(listed) for type, listed in by_type.items()}
    folds |= dict.fromkeys(RETRACTIONS, fold_retraction)

    def fold(state: State, recorded: Recorded) -> State | None:
        step = folds.get(recorded.event.type)
        return None if step is None else step(state, recorded)

    return Projection(
        name="memory",
        version=LAYOUT,
        handles=types,
        empty=dict,
        fold=fold,
        view=reader.view,
        depends=Depends(
            edges=reader.edges, due=reader.due, feeds=partial(_feeds, derivations), lacks=partial(_lacks, derivations)
        ),
        ordered=True,
        in_place=partial(in_place, by_type),
        in_parts=True,
        fingerprint=derivations.fingerprint,
        faster=Faster(
            merge=partial(merge, {maker.code: maker for listed in by_type.values() for maker in listed}), fold=folds.get
        ),
    )


def _feeds(derivations: DerivationSet, path: tuple[str, ...]) -> frozenset[str] | None:
    """The event types that can change what stands at (type, key, …) of the view; a retraction takes others along."""
    types: set[str] = set()
    for derivation in derivations.derivations:
        if all(may_render(t, step) for t, step in zip((derivation.type, derivation.key), path, strict=False)):
            types |= {feed.type for feed in derivation.feeds}
    return frozenset(types | RETRACTIONS) if types and path[0] in (*TYPES, "retracted") else frozenset()


def _lacks(derivations: DerivationSet, path: tuple[str, ...]) -> str:
    """Why no event can make a fact at (type, key, …), with one that some can make; empty where one can."""
    if _feeds(derivations, path) != frozenset():
        return ""
    if path[0] not in TYPES:
        return f"memory has no {path[0]!r}; {hint(path[0], (*TYPES, 'retracted'))}"
    keys = {d.key[0] for d in derivations.derivations if may_render(d.type, path[0]) and len(d.key) == 1}
    known = {key for key in keys if isinstance(key, str)}
    return (
        f"nothing makes the fact {'/'.join(path[:2])!r}; {hint(path[1], known) if path[1:] else hint(path[0], TYPES)}"
    )


def facts_of(by_type: FactDerivations, recorded: Recorded) -> Iterator[tuple[str, str]]:
    """Type and key of every fact that an event makes, takes back or gives back."""
    event = recorded.event
    if event.type in RETRACTIONS:
        named = (event.properties.get("type"), event.properties.get("key"))
        if isinstance(named[0], str) and isinstance(named[1], str):
            yield named[0], named[1]
    for maker in by_type.get(event.type, ()):
        yield from facts_made(maker, recorded)
