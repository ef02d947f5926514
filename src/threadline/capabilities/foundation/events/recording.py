"""What callers write as events: each becomes an event, or an entry of the rejected log with an outcome of its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.foundation.events.forms import NativeEvent, native_event
from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event, Receipt
from threadline.kernel.ids import short_hash
from threadline.kernel.ports import Ports
from threadline.kernel.rejected import KEY_LENGTH_MAX, RejectedEntry, Unreadable, keepable, shown, writable
from threadline.kernel.typed import converted, readable

NATIVE_FORM = "native"
"""The form of entries that were to be a `NativeEvent`."""


class Draft(NamedTuple):
    """An event to record, and the position that its person is expected at."""

    event: Event
    expected: int | None = None


def read_native(value: Any, label: str) -> NativeEvent:
    """A caller's event. Raises `EventRejected`, with ``label`` in the message."""
    if isinstance(value, Unreadable):
        raise value.error
    try:
        return converted(value, NativeEvent)
    except msgspec.ValidationError as error:
        raise EventRejected("invalid_value", readable(error, label, NativeEvent.__struct_fields__)) from None


def draft(
    value: Any, *, workspace: str, source: str, source_type: str, received_at: int, label: str
) -> Draft | RejectedEntry:
    """What a caller's event becomes, stamped with its way in."""
    try:
        native = read_native(value, label)
        event = native_event(
            native, workspace=workspace, source=source, source_type=source_type, received_at=received_at, label=label
        )
        return Draft(event, native.expected)
    except EventRejected as error:
        return unfit(value, error, workspace=workspace, source=source, received_at=received_at)


def unfit(value: Any, error: EventRejected, *, workspace: str, source: str, received_at: int) -> RejectedEntry:
    """What is kept of a caller's event that is none."""
    payload, whole = (value.text, False) if isinstance(value, Unreadable) else keepable(value)
    key = value.get("key", "") if isinstance(value, dict) else ""
    key = writable(key[:KEY_LENGTH_MAX]) if isinstance(key, str) else ""
    return RejectedEntry(
        id=short_hash(workspace, source, error.code, key, shown(payload)),
        workspace=workspace,
        source=writable(source),
        code=error.code,
        message=str(error),
        received_at=received_at,
        payload=payload,
        form=NATIVE_FORM if whole else "text",
        key=key,
    )


def record(engine: Ports, drafts: Sequence[Draft | RejectedEntry]) -> list[Receipt]:
    """One receipt each, in order. What is accepted, and what is kept of the rest, is durable when this returns."""
    refused = {index: entry for index, entry in enumerate(drafts) if isinstance(entry, RejectedEntry)}
    if refused:
        engine.rejected.add(refused.values())
    events = (item for item in drafts if isinstance(item, Draft))
    receipts: list[Receipt] = []
    for expected, group in itertools.groupby(events, key=lambda event: event.expected):
        receipts += engine.recorder.record([item.event for item in group], expected=expected)
    for index, entry in refused.items():
        receipts.insert(index, entry.receipt)
    return receipts
