"""The events that tell who belongs to a segment; Threadline itself puts them into a person's thread."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties

SEGMENT_ENTERED = "segment_entered"
SEGMENT_LEFT = "segment_left"
SEGMENT_RENEWED = "segment_kept"
SEGMENTS_REFRESHED = "threadline.segments_refreshed"


class _Membership(Properties):
    segment: Annotated[str, Meta(description="The segment.")]
    version: Annotated[str, Meta(description="The hash of the conditions by which it was decided.")]
    why: Maybe[Annotated[str, Meta(description="Why it happened: see `Event.why`.")]] = UNSET


class _Refreshed(Properties):
    parts: Maybe[Annotated[list[str], Meta(description="The segments; all of them if it is left out.")]] = UNSET
    before: Maybe[
        Annotated[int, Meta(description="They are looked at as they were before this instant; microseconds.")]
    ] = UNSET


_SHOWN = ("segment", "version", "why")
"""What of their properties is text and not personal."""
EVENT_TYPES = (
    EventType(
        SEGMENT_ENTERED,
        "The conditions of a segment have become true.",
        _Membership,
        speaker="threadline",
        sentence="Entered the segment {segment}",
        shown=_SHOWN,
        lasts="who is in a segment, and since when, is known from it",
    ),
    EventType(
        SEGMENT_LEFT,
        "The conditions by which the person belonged to a segment are true no more.",
        _Membership,
        speaker="threadline",
        sentence="Left the segment {segment}",
        shown=_SHOWN,
        lasts="who is in a segment, and since when, is known from it",
    ),
    EventType(
        SEGMENT_RENEWED,
        "The conditions of a segment were changed, and the person belongs to it as before.",
        _Membership,
        speaker="threadline",
        sentence="Stays in the segment {segment}",
        shown=_SHOWN,
        lasts="who is in a segment, and since when, is known from it",
    ),
    EventType(
        SEGMENTS_REFRESHED, "Somebody asks to look at segments of the person again.", _Refreshed, speaker="threadline"
    ),
)
