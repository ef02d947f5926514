"""Decisions for the metrics."""

from __future__ import annotations

from threadline.capabilities.decide.rules.deciding import SOURCE
from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.kernel.event import Event
from threadline.kernel.event_counter import EventCounter


def _values(event: Event) -> tuple[str, ...] | None:
    # Anybody may send an event of this type, and fill a label with what they like.
    if event.source != SOURCE:
        return None
    return str(event.properties.get("rule", "")), str(event.properties.get("version", ""))


DECISIONS = EventCounter(
    "decisions_total", "Decisions of rules.", ("rule", "version"), frozenset({DECISION_MADE}), _values
)
