"""What the store has of a person's points."""

from __future__ import annotations

from threadline.capabilities.profile.points.events import (
    OWN,
)
from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views

POINTS_FILE = PersonFile(
    "points",
    "Your points",
    "The balance, and every line of the ledger: what was earned, spent, put right or has expired, and why.",
    joined(shown_views("points"), shown_events(*OWN)),
    ("points",),
)
