"""How many people belong to each segment."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.jobs.filling import BeingFilled, being_filled
from threadline.capabilities.profile.segments.operations import SEGMENTS_GROUP
from threadline.capabilities.profile.segments.operations.definitions import Segments, segment_named
from threadline.capabilities.profile.segments.projection import SEGMENTS, member_rows
from threadline.kernel.applied import IndexPart
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Operation, Params, always, shaped_operation
from threadline.kernel.time import SECOND


class SizesParams(Params, kw_only=True):
    """Of which segments, and how long to count."""

    name: Annotated[
        str, names_a("segment"), Meta(description="Only of this segment; empty: of all.", max_length=64)
    ] = ""
    seconds: Annotated[
        float, Meta(description="How long to count at most; what is not counted by then is at least.", ge=0.1, le=30)
    ] = 2


@key_fields("name", "members", "exact", "being_filled")
class SegmentSize(msgspec.Struct, kw_only=True):
    """The members of a segment, as the events tell."""

    name: str
    members: int
    exact: Annotated[
        bool,
        Meta(description="False: there are at least so many, as the time was up; or so many so far, see the next."),
    ]
    being_filled: BeingFilled = ""


class SizesResult(msgspec.Struct, kw_only=True):
    """The size of every segment, by name."""

    segments: list[SegmentSize]


def sizes_picture(result: SizesResult) -> Chart:
    """A bar for each segment, the largest first."""
    ordered = sorted(result.segments, key=lambda segment: (-segment.members, segment.name))
    points = [
        Point(segment.name.replace("_", " "), segment.members, is_uncertain=not segment.exact) for segment in ordered
    ]
    return Chart(
        kind="bars",
        title="Sizes of segments",
        x=Axis(title="Segment"),
        y=Axis(title="People", unit="count"),
        series=(Series("", tuple(points)),),
        uncertain="At least so many, or so many so far.",
        summary=f"The largest of {len(ordered)}, {points[0].x}, has {ordered[0].members:,}." if ordered else "",
    )


def _read(params: SizesParams) -> tuple[IndexPart, ...]:
    return (IndexPart(SEGMENTS.name, params.name),)


@shaped_operation(
    "GET /v1/segments/sizes",
    SEGMENTS_GROUP,
    relies_on=("segments",),
    relied_on=_read,
    is_long=always,
    picture=sizes_picture,
    example=SizesParams(name="big_spenders"),
)
def sizes(segments: Segments, context: Context, params: SizesParams) -> SizesResult:
    """Count the members of each segment, by their index."""
    asked = (segment_named(segments, params.name),) if params.name else segments
    until = context.engine.recorder.clock() + round(params.seconds * SECOND)
    return SizesResult(segments=[_size(context, segment.name, until) for segment in asked])


def _size(context: Context, name: str, until: int) -> SegmentSize:
    members, clock = 0, context.engine.recorder.clock
    filling = being_filled(context.engine, (IndexPart(SEGMENTS.name, name),))
    for _ in member_rows(context.engine.store, context.workspace, name, "", PAGE_ITEMS_MAX):
        members += 1
        if members % PAGE_ITEMS_MAX == 0 and clock() >= until:
            return SegmentSize(name=name, members=members, exact=False, being_filled=filling)
    return SegmentSize(name=name, members=members, exact=not filling, being_filled=filling)


def operations(segments: Segments) -> list[Operation]:
    """The operation that counts the members of these segments."""
    return [sizes(segments)]
