"""What the memory capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.memory.definition import derivations_of
from threadline.capabilities.memory.operations.derivations import derivations_operation
from threadline.capabilities.memory.operations.lineage import lineage_operation
from threadline.capabilities.memory.personal import sources_file
from threadline.capabilities.memory.projection import projection


def declare(definitions: Definitions) -> list[Any]:
    """The projection and the operations that depend on what is declared."""
    derivations = derivations_of(definitions)
    return [
        projection(derivations), lineage_operation(derivations), derivations_operation(derivations),
        sources_file(derivations),
    ]  # fmt: skip
