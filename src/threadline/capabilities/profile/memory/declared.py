"""What the memory capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from threadline.capabilities.foundation.conditions.values_read import merged, values_compared
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.memory.definition import TYPES, Derivation, DerivationSet, derivations_of
from threadline.capabilities.profile.memory.operations.derivations import definitions
from threadline.capabilities.profile.memory.operations.lineage import lineage
from threadline.capabilities.profile.memory.paths import Places, Variable
from threadline.capabilities.profile.memory.personal import sources_file
from threadline.capabilities.profile.memory.projection import FactDerivations, fact_derivations, projection
from threadline.kernel.lasting import Lasting
from threadline.kernel.reading import Reading, Readings


def declare(declared: Definitions) -> list[Any]:
    """The projection and the operations that depend on what is declared."""
    derivations = derivations_of(declared)
    by_type = fact_derivations(derivations)
    return [
        projection(derivations, by_type),
        lineage(by_type),
        definitions(derivations),
        sources_file(by_type),
        _lasting(by_type),
        Readings("memory", _values_read(derivations)),
    ]


def _values_read(derivations: DerivationSet) -> dict[str, list[Reading]]:
    """What facts are made of, where it has to be of a kind."""
    read: list[Mapping[str, Iterable[Reading]]] = []
    for derivation in derivations.derivations:
        summed = [field for field in derivation.fields if field.aggregate == "sum"]
        amounts = [derivation.confidence, *(places for field in summed for places in (field.of, field.times))]
        values = [Reading(path, "number") for places in amounts for path in _paths(derivation, places)]
        values += [Reading(path, "instant") for path in _paths(derivation, derivation.expires_at)]
        values += [Reading(path, "many") for path in derivation.each.read_in(None, ())] if derivation.each else []
        for part in (*derivation.type, *derivation.key):
            if isinstance(part, Variable):
                among = frozenset(TYPES if part in derivation.type else ())
                values += [Reading(path, "label", 0, among) for path in _paths(derivation, part.places)]
        for feed in derivation.feeds:
            read += [{feed.type: values}, values_compared(feed.where.parts, [feed.type])]
    return merged(*read)


def _paths(derivation: Derivation, places: object) -> Iterator[tuple[str, ...]]:
    """Where in an event a derivation reads; nowhere for what is no path."""
    if isinstance(places, Places):
        yield from places.read_in(derivation.each, derivation.otherwise)


def _lasting(by_type: FactDerivations) -> Lasting:
    """The types that facts are made of."""
    whys = {type: f"facts are made of them, such as {made[0].derivation.name!r}" for type, made in by_type.items()}
    return Lasting("memory.declared", whys)
