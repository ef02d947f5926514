"""The event that publishes features."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from threadline.kernel.event_type import EventType, Properties

FEATURES_CHANGED = "features_changed"
SOURCE = "feature_updates"
"""The source of that event."""


class _Changed(Properties):
    features: Annotated[
        dict[str, Any], Meta(description="The values, by name, that are others than those published last.")
    ]
    as_of: Annotated[str, Meta(description="The instant at which they were read.")]


EVENT_TYPES = (
    EventType(
        FEATURES_CHANGED,
        "Features of the person have other values than those published last.",
        _Changed,
        speaker="threadline",
        sentence="Published features that have changed",
        shown=("status", "unit"),
        lasts="what was published last is known from it",
    ),
)
