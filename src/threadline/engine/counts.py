"""What an engine counts for the metrics: events of declared types, merges, sends and folds that failed."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.kernel.event import Event
from threadline.kernel.event_counter import EventCounter
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.sender import EFFECT_UNKNOWN, Outcome

COMBINATIONS_MAX = 1_000
"""Combinations of labels of one metric: rules are made by calls as well, and each version would be a series for ever.
What comes beyond counts as `OTHER`."""
OTHER = "other"
_OUTCOMES = {MERGED: "merged", SPLIT: "split"}

IDENTITY_MERGES = EventCounter(
    "identity_merges_total",
    "People merged and split, and joins that were quarantined.",
    ("outcome",),
    frozenset(_OUTCOMES),
    lambda event: (_OUTCOMES[event.type],),
)
SENDS = EventCounter("sends_total", "Attempts to send an effect.", ("kind", "outcome"), frozenset(), lambda event: None)
PROJECTION_ERRORS = EventCounter(
    "projection_errors_total",
    "Events rejected because a projection could not fold them.",
    (),
    frozenset(),
    lambda event: None,
)


class Counts:
    """Thread-safe as far as a metric must be: an update that two threads make at once may be counted once."""

    def __init__(self, declared: Iterable[EventCounter] = ()) -> None:
        self.counters = (*declared, IDENTITY_MERGES, SENDS, PROJECTION_ERRORS)
        self.values: dict[str, dict[tuple[str, ...], int]] = {counter.name: {} for counter in self.counters}
        """Metric -> labels, the workspace first -> how many."""
        self.by_type: dict[str, list[EventCounter]] = {}
        for counter in self.counters:
            for type in counter.types:
                self.by_type.setdefault(type, []).append(counter)

    def note(self, events: Iterable[Event]) -> None:
        """Count committed events."""
        for event in events:
            for counter in self.by_type.get(event.type, ()):
                labels = counter.values(event)
                if labels is not None:
                    self.add(counter, event.workspace, *labels)

    def sent(self, workspace: str, kind: str, outcome: Outcome) -> None:
        """Count an attempt to send an effect."""
        name = "sent"
        if outcome.type == EFFECT_UNKNOWN:
            name = "unknown"
        elif outcome.parked:
            name = "parked"
        elif outcome.retry_after_seconds is not None:
            name = "retried"
        self.add(SENDS, workspace, kind, name)

    def add(self, counter: EventCounter, *labels: str) -> None:
        """Count one."""
        values = self.values[counter.name]
        if labels not in values and len(values) >= COMBINATIONS_MAX:
            labels = (labels[0], *(OTHER for _ in labels[1:]))
        values[labels] = values.get(labels, 0) + 1
