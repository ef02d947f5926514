"""The events that tell who belongs to a segment; Threadline itself puts them into a person's thread."""

from __future__ import annotations

from threadline.kernel.lasting import Lasting, for_life

SEGMENT_ENTERED = "segment_entered"
"""Properties: ``segment``, ``version``, the hash of the conditions that have become true, and ``why``: `Event.why`."""
SEGMENT_LEFT = "segment_left"
"""Properties: ``segment``, ``version``, of the conditions by which the person belonged, and ``why``."""
SEGMENT_RENEWED = "segment_kept"
"""The conditions were changed and the person belongs as before. Properties: ``segment``, the new ``version`` and
``why``."""
SEGMENTS_REFRESHED = "threadline.segments_refreshed"
"""Somebody asks for all segments of the person to be looked at again; no properties."""

LASTING = Lasting(
    "segments",
    for_life((SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED), "who is in a segment, and since when, is known from it"),
)
