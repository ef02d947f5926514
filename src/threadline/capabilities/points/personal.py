"""What the store has of a person's points."""

from __future__ import annotations

from threadline.capabilities.points.events import (
    OWN,
    POINTS_ADJUSTED,
    POINTS_ANOMALY_DETECTED,
    POINTS_EARNED,
    POINTS_EXPIRED,
    POINTS_REFUSED,
    POINTS_SPEND_REQUESTED,
    POINTS_SPENT,
)
from threadline.kernel.disclosure import ShownProperties
from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views

POINTS_FILE = PersonFile(
    "points", "Your points", "The balance, and every line of the ledger: what was earned, spent, put right or has "
    "expired, and why.",
    joined(shown_views("points"), shown_events(*OWN)), ("points",),
)  # fmt: skip
SHOWN = ShownProperties(
    "points",
    {
        POINTS_EARNED: ("rule", "table"),
        POINTS_SPEND_REQUESTED: (),
        POINTS_SPENT: (),
        POINTS_REFUSED: (),
        POINTS_ADJUSTED: (),
        POINTS_EXPIRED: (),
        POINTS_ANOMALY_DETECTED: ("kind", "of"),
    },
)
