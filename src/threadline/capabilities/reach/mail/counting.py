"""Mails that were not sent, for the metrics."""

from __future__ import annotations

from threadline.capabilities.reach.mail.events import MAIL_SKIPPED
from threadline.kernel.event import Event
from threadline.kernel.event_counter import EventCounter


def _reason(event: Event) -> tuple[str, ...] | None:
    return (str(event.properties.get("reason", "")),)


SUPPRESSIONS = EventCounter(
    "suppressions_total", "Mails that were not sent because they may not be.", ("reason",), frozenset({MAIL_SKIPPED}),
    _reason,
)  # fmt: skip
