"""What the store has of a person's streaks."""

from __future__ import annotations

from threadline.capabilities.profile.streaks.events import (
    STREAK_AMNESTY_GRANTED,
    STREAK_FREEZE_GRANTED,
    STREAK_MILESTONE_REACHED,
    ZONE_HOPPING_DETECTED,
)
from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views

STREAKS_FILE = PersonFile(
    "streaks",
    "Your streaks",
    "On how many days in a row you were active, now and before.",
    joined(
        shown_views("streaks"),
        shown_events(STREAK_MILESTONE_REACHED, ZONE_HOPPING_DETECTED, STREAK_FREEZE_GRANTED, STREAK_AMNESTY_GRANTED),
    ),
    ("streaks",),
)
