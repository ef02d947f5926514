"""What the people capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.operations import people
from threadline.capabilities.profile.segments.definition import read_segments


def declare(definitions: Definitions) -> list[Any]:
    """The list of people, which can be that of a segment's members."""
    return [people.operation(read_segments(definitions) or ())]
