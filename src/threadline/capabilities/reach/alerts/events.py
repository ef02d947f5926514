"""The event type of alerts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from threadline.kernel.event_type import EventType, Properties

ALERT_DISMISSED = "alert_dismissed"


class _Dismissed(Properties):
    alert: Annotated[str, Meta(description="The alert's id.")]
    version: Annotated[int, Meta(description="The version that was shown.")]


EVENT_TYPES = (
    EventType(
        ALERT_DISMISSED,
        "The person has dismissed an alert. `alerts_dismiss` records it, so that no write key forges it.",
        _Dismissed,
        speaker="process",
        sentence="Dismissed the alert {alert}",
        shown=("alert",),
        lasts="an alert that somebody has dismissed would be shown again",
    ),
)
