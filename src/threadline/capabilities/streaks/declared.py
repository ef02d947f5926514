"""What the streaks capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.streaks.definition import read_streaks
from threadline.capabilities.streaks.operations import operations
from threadline.capabilities.streaks.policy import policy
from threadline.capabilities.streaks.projection import projection


def declare(definitions: Definitions) -> list[Any]:
    """The projection, the policy and the operations that depend on what is declared."""
    streaks = read_streaks(definitions)
    return [projection(streaks), policy(streaks), *operations(streaks)]
