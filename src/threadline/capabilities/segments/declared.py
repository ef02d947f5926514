"""What the segments capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.segments.definition import read_segments
from threadline.capabilities.segments.operations import definitions, members, person, refresh, sizes
from threadline.capabilities.segments.policy import segments_policy
from threadline.capabilities.segments.refresh import segments_refresh


def declare(declared: Definitions) -> list[Any]:
    """The operations, and the policy where the section stands: without it no event costs anything.

    An empty section keeps the policy, which then lets everybody leave who belonged to what was declared before.
    """
    segments = read_segments(declared)
    nouns = (person, members, definitions, refresh, sizes)
    made: list[Any] = [operation for noun in nouns for operation in noun.operations(segments or ())]
    return made if segments is None else [*made, segments_policy(segments), segments_refresh(segments)]
