"""What the store has of a person as events: all that happened, and what came and could not be recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from threadline.capabilities.foundation.events.forms import event_view, original
from threadline.capabilities.foundation.events.rejected import rejected_view
from threadline.kernel.personal import PersonFile, Subject


def _events(subject: Subject) -> Iterator[dict[str, Any]]:
    forms = subject.engine.log.forms
    for recorded in subject.events():
        yield {**msgspec.to_builtins(event_view(recorded)), "payload": original(forms, recorded.event)}


def _rejected(subject: Subject) -> Iterator[dict[str, Any]]:
    return (msgspec.to_builtins(rejected_view(entry)) for entry in subject.rejected())


EVENTS_FILE = PersonFile(
    "events",
    "Everything that happened",
    "Every event that was recorded about you, as it is stored, and the message "
    "in which it came where that had another form.",
    _events,
    order=90,
)
REJECTED_FILE = PersonFile(
    "rejected",
    "What could not be recorded",
    "Messages that name you and were kept apart, because something was wrong with them.",
    _rejected,
    order=91,
)
