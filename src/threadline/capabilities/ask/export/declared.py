"""What the export puts into the catalogue beside its values: the operation that knows the declared segments."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.ask.export import starting
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.segments.definition import read_segments


def declare(definitions: Definitions) -> list[Any]:
    """The operation that checks an audience against the declared segments."""
    return starting.operations(read_segments(definitions) or ())
