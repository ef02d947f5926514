"""The event types that say who a person is."""

from __future__ import annotations

from threadline.kernel.identity import ALIAS, MERGED, SPLIT
from threadline.kernel.lasting import Lasting, for_life

IDENTIFY = "identify"
"""Properties are traits: newest occurred_at wins per trait, null removes."""
GROUP = "group"
"""The person belongs to the group `object_ref`; properties are the group's traits. ``left: true`` ends it."""
TAG_ADDED = "tag_added"
"""Properties: ``tag``."""
TAG_REMOVED = "tag_removed"
"""Properties: ``tag``."""

LASTING = Lasting(
    "people",
    for_life((MERGED, SPLIT, ALIAS), "who is one person is known from it")
    | for_life((IDENTIFY, GROUP, TAG_ADDED, TAG_REMOVED), "a profile is made of it"),
)
