"""The segments in force and what each is made of."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.profile.segments.definition import Segment
from threadline.capabilities.profile.segments.operations import SEGMENTS_GROUP
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, NoParams, Operation, shaped_operation
from threadline.kernel.suggestion import suggestion

Name = Annotated[str, names_a("segment"), Meta(description="A segment's name.", min_length=1, max_length=64)]
Segments = tuple[Segment, ...]


def segment_named(segments: Segments, name: str) -> Segment:
    """The declared segment of this name; raises `NotFound` with the nearest one."""
    for segment in segments:
        if segment.name == name:
            return segment
    known = [segment.name for segment in segments]
    hint = suggestion(name, known) if known else "none is declared"
    raise NotFound(f"there is no segment {name[:64]!r}; {hint}")


@key_fields("name", "description")
@not_personal
class SegmentDefinition(msgspec.Struct, kw_only=True):
    """What a segment is made of."""

    name: str
    description: str
    version: Annotated[str, Meta(description="A hash of the conditions.")]
    when: Annotated[dict[str, Any], Meta(description="The tree of conditions.")]


class SegmentDefinitionsResult(msgspec.Struct, kw_only=True):
    """Every declared segment, by name."""

    segments: list[SegmentDefinition]


@shaped_operation("GET /v1/segments", SEGMENTS_GROUP)
def list_(segments: Segments, context: Context, params: NoParams) -> SegmentDefinitionsResult:
    """List the segments in force and what each is made of."""
    shown = [
        SegmentDefinition(name=s.name, description=s.description, version=s.version, when=s.conditions.plain)
        for s in segments
    ]
    return SegmentDefinitionsResult(segments=shown)


def operations(segments: Segments) -> list[Operation]:
    """The operation that lists these definitions."""
    return [list_(segments)]
