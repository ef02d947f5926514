"""What the broadcasts capability puts into the catalogue beside its values: operations that know the segments."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.broadcasts.operations import creating
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.segments.definition import read_segments


def declare(declared: Definitions) -> list[Any]:
    """The operations that check an audience against the declared segments."""
    return creating.operations(read_segments(declared) or ())
