"""What the schemas capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.schemas.definition import read_schemas
from threadline.kernel.requirement import Requirement


def declare(definitions: Definitions) -> list[Requirement]:
    """A requirement for each type of events that has a schema."""
    return read_schemas(definitions)
