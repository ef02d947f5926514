"""What the store has of a person about groups of people that they belong to."""

from __future__ import annotations

from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED
from threadline.capabilities.profile.segments.projection import TABLE
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views

SEGMENT_TABLE = StoreTable(TABLE, "state_rows", shown_in="segments")
SEGMENTS_FILE = PersonFile(
    "segments",
    "Groups that you are counted among",
    "Groups of similar customers that you belong to, since when, and when you entered and left others.",
    joined(shown_views("segments"), shown_events(SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED)),
    ("segments",),
)
