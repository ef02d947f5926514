"""What the segments capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.conditions.values_read import merged, values_compared
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.jobs.refreshing import refresh_by_job
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.operations import SEGMENTS_GROUP, definitions, members, person, sizes
from threadline.capabilities.profile.segments.policy import segments_policy
from threadline.capabilities.profile.segments.refresh import segments_refresh
from threadline.kernel.reading import Readings


def declare(declared: Definitions) -> list[Any]:
    """The operations, and the policy where the section stands: without it no event costs anything.

    An empty section keeps the policy, which then lets everybody leave who belonged to what was declared before.
    """
    segments = read_segments(declared)
    refresh = segments_refresh(segments or ())
    made: list[Any] = [
        *(operation for noun in (person, members, definitions, sizes) for operation in noun.operations(segments or ())),
        *refresh_by_job(
            SEGMENTS_GROUP, refresh, "Check everybody's segments again, in a job.", "Checked everybody's segments again"
        ),
    ]
    if segments is None:
        return made
    compared = merged(*(values_compared([segment.conditions.tree], ()) for segment in segments))
    return [*made, segments_policy(segments), refresh, Readings("segments", compared)]
