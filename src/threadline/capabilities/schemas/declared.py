"""What the schemas capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.schemas.definition import read_schemas
from threadline.kernel.requirement import Requirement


def declare(definitions: Definitions) -> list[Requirement]:
    """A requirement for each type of events that has a schema."""
    return read_schemas(definitions)
