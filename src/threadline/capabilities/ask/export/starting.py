"""Starting an export of many people, as every surface offers it; the job is watched and steered as any other."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.export.job import JOB_KIND, Asked, storage_of
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.capabilities.foundation.jobs.refreshing import begun
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.operations.definitions import Segments
from threadline.capabilities.reach.broadcasts.audience import Resolver
from threadline.capabilities.reach.broadcasts.definition import Audience
from threadline.kernel.operation import Context, Group, Operation, shaped_operation

EXPORTS_GROUP = Group("exports", "Many people and their events in files.")


class ExportsParams(Audience, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which people: all that is given must be true of a person; nothing given means everybody."""

    events: Annotated[bool, Meta(description="Whether their events are written as well.")] = True


@shaped_operation(
    "POST /v1/exports",
    EXPORTS_GROUP,
    done=("Started an export of the segment {segment}", "Started an export of people"),
    scope="admin",
    example=ExportsParams(segment="vip"),
)
def start(segments: Segments, context: Context, params: ExportsParams) -> JobView:
    """Start a job that writes people and their events into files; the setting `exports` names the folder or bucket."""
    audience = Audience(**{name: getattr(params, name) for name in Audience.__struct_fields__})
    Resolver(audience).refuse_mistakes(context.engine.catalogue, segments)
    asked = Asked(audience=audience, events=params.events, to=storage_of(context.engine).url())
    return begun(context, JOB_KIND, JOB_KIND, msgspec.to_builtins(asked))


def declare(definitions: Definitions) -> list[Operation]:
    """The operation that knows the declared segments."""
    return [start(read_segments(definitions) or ())]
