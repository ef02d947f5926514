"""The events that tell who belongs to a segment; Threadline itself puts them into a person's thread."""

from __future__ import annotations

SEGMENT_ENTERED = "segment_entered"
"""Properties: ``segment`` and ``version``, the hash of the conditions that have become true."""
SEGMENT_LEFT = "segment_left"
"""Properties: ``segment`` and ``version``, of the conditions by which the person belonged."""
SEGMENT_RENEWED = "segment_kept"
"""The conditions were changed and the person belongs as before. Properties: ``segment`` and the new ``version``."""
SEGMENTS_REFRESHED = "threadline.segments_refreshed"
"""Somebody asks for all segments of the person to be looked at again; no properties."""
