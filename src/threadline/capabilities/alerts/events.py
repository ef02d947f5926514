"""The event type of alerts."""

from __future__ import annotations

ALERT_DISMISSED = "alert_dismissed"
"""Properties: ``alert``, ``version``. Counts if `alerts_dismiss` recorded it, so that nobody forges it with a public
write key."""
