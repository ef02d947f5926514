"""What alerts put into the catalogue: operations that know the declared segments."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.alerts.operations import listed, person, written
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.segments.definition import read_segments


def declare(definitions: Definitions) -> list[Any]:
    """The operations."""
    segments = read_segments(definitions) or ()
    return [operation for noun in (person, written, listed) for operation in noun.operations(segments)]
