"""What the store has of a person about figures that were passed on."""

from __future__ import annotations

from threadline.capabilities.profile.feature_updates.events import FEATURES_CHANGED
from threadline.capabilities.profile.feature_updates.projection import PROJECTION
from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views

FEATURE_UPDATES_FILE = PersonFile(
    "feature_updates",
    "Figures that were passed on",
    "When figures about you changed and other systems were told.",
    joined(shown_views(PROJECTION), shown_events(FEATURES_CHANGED)),
    (PROJECTION,),
)
