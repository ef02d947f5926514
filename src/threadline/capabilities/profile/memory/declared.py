"""What the memory capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.memory.definition import derivations_of
from threadline.capabilities.profile.memory.operations.derivations import definitions
from threadline.capabilities.profile.memory.operations.lineage import lineage
from threadline.capabilities.profile.memory.personal import sources_file
from threadline.capabilities.profile.memory.projection import FactDerivations, fact_derivations, projection
from threadline.kernel.lasting import Lasting


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
    ]


def _lasting(by_type: FactDerivations) -> Lasting:
    """The types that facts are made of."""
    whys = {type: f"facts are made of them, such as {made[0].derivation.name!r}" for type, made in by_type.items()}
    return Lasting("memory.declared", whys)
