"""Reads a rejected payload again in the form in which it came, for `resubmit`."""

from __future__ import annotations

from typing import Any

import msgspec

from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event
from threadline.kernel.rejected import RejectedEntry
from threadline.wire import cloudevents, segment
from threadline.wire.rejection import Decoded


def read_segment(payload: Any, entry: RejectedEntry) -> Event:
    """The event of a Segment message. Raises `EventRejected` if it still is none."""
    body = _body(payload)
    kind = payload.get("type")
    if kind not in segment.KINDS:
        raise EventRejected("unknown_type", f"the message's `type` must be one of {', '.join(sorted(segment.KINDS))}")
    return _only(
        segment.decode(
            body,
            kind=kind,
            source=entry.source,
            workspace=entry.workspace,
            received_at=entry.received_at,
            # Always the same for an entry: a message without a messageId must not be recorded at each attempt.
            fresh_key=lambda: f"resubmitted/{entry.id}",
        )
    )


def read_cloudevent(payload: Any, entry: RejectedEntry) -> Event:
    """The event of a CloudEvent in the structured form. Raises `EventRejected` if it still is none."""
    headers = {"content-type": "application/cloudevents+json"}
    return _only(
        cloudevents.decode(
            _body(payload), headers, source=entry.source, workspace=entry.workspace, received_at=entry.received_at
        )
    )


READERS = {"segment": read_segment, "cloudevents": read_cloudevent}
"""Form of an entry -> its reader."""


def _body(payload: Any) -> bytes:
    if not isinstance(payload, dict):
        raise InvalidValue("the payload must be a JSON object")
    return msgspec.json.encode(payload)


def _only(decoded: Decoded) -> Event:
    result = decoded.results[0]
    if isinstance(result, Event):
        return result
    raise EventRejected(result.code, result.message)
