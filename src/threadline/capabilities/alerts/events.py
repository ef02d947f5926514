"""The event type of alerts."""

from __future__ import annotations

from threadline.kernel.lasting import Lasting

ALERT_DISMISSED = "alert_dismissed"
"""Properties: ``alert``, ``version``. Counts if `alerts_dismiss` recorded it, so that nobody forges it with a public
write key."""

LASTING = Lasting("alerts", {ALERT_DISMISSED: "an alert that somebody has dismissed would be shown again"})
