"""Messages in the form in which they came: a rejected one read again, a recorded one written again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event
from threadline.kernel.rejected import Envelope, Reader, RejectedEntry
from threadline.wire import cloudevents, segment
from threadline.wire.cloudevents_event import person_kinds
from threadline.wire.rejection import Rejection


def readers(kinds: Iterable[str]) -> dict[str, Reader]:
    """Form of an entry -> its reader, where these kinds of identifiers are declared."""
    known = person_kinds(kinds)
    return {
        "segment": read_segment,
        "cloudevents": lambda payload, entry: read_cloudevent(payload, entry, known),
    }


def forms() -> dict[str, Callable[[Event], dict[str, Any]]]:
    """Member of `Event.wire` -> what writes the message that an event came in as it came."""
    return {"segment": segment.encode, "cloudevent": cloudevents.encode}


def read_segment(payload: Any, entry: RejectedEntry) -> Event:
    """The event of a Segment message, in the envelope in which it came. Raises `EventRejected` if it still is none."""
    body = _body(payload)
    result = segment.reread(
        body,
        _envelope(payload, entry),
        source=entry.source,
        workspace=entry.workspace,
        received_at=entry.received_at,
        # Always the same for an entry: a message without a messageId must not be recorded at each attempt.
        fresh_key=lambda: f"resubmitted/{entry.id}",
    )
    return _event(result)


def _envelope(payload: dict[str, Any], entry: RejectedEntry) -> Envelope:
    envelope = entry.envelope or Envelope()
    stored = entry.payload if isinstance(entry.payload, dict) else {}
    given = payload.get("type")
    # The path named the call, whatever `type` said beside it; a `type` that was put right is what is meant now.
    if envelope.kind and given is not None and given != stored.get("type"):
        return msgspec.structs.replace(envelope, kind="")
    return envelope


def read_cloudevent(payload: Any, entry: RejectedEntry, kinds: frozenset[str]) -> Event:
    """The event of a CloudEvent in the structured form. Raises `EventRejected` if it still is none."""
    headers = {"content-type": "application/cloudevents+json"}
    decoded = cloudevents.decode(
        _body(payload),
        headers,
        source=entry.source,
        workspace=entry.workspace,
        received_at=entry.received_at,
        kinds=kinds,
    )
    return _event(decoded.results[0])


def _body(payload: Any) -> bytes:
    if not isinstance(payload, dict):
        raise InvalidValue("the payload must be a JSON object")
    return msgspec.json.encode(payload)


def _event(result: Event | Rejection) -> Event:
    if isinstance(result, Event):
        return result
    raise EventRejected(result.code, result.message)
