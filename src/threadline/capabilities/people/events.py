"""The event types that say who a person is."""

from __future__ import annotations

IDENTIFY = "identify"
"""Properties are traits: newest occurred_at wins per trait, null removes."""
GROUP = "group"
"""The person belongs to the group `object_ref`; properties are the group's traits. ``left: true`` ends it."""
TAG_ADDED = "tag_added"
"""Properties: ``tag``."""
TAG_REMOVED = "tag_removed"
"""Properties: ``tag``."""
