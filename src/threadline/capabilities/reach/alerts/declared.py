"""What alerts put into the catalogue: operations that know the declared segments."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.reach.alerts.operations import listed, person, written


def declare(definitions: Definitions) -> list[Any]:
    """The operations."""
    segments = read_segments(definitions) or ()
    return [operation for noun in (person, written, listed) for operation in noun.operations(segments)]
