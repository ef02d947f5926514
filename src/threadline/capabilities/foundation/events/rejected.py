"""Entries of the rejected log in the form in which they are read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.disclosure import FREE, SENTENCE, not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.rejected import Envelope, RejectedEntry


class EnvelopeView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a request said for all its messages."""

    kind: Annotated[str, Meta(description="The call that its path named; empty for a batch.")] = ""
    sent_at: Annotated[Instant | None, Meta(description="The producer's clock when it sent.")] = None
    context: Annotated[dict[str, Any] | None, FREE] = None
    integrations: Annotated[dict[str, Any] | None, FREE] = None
    historical: bool = False


@key_fields("code", "message", "id")
@not_personal
class RejectedView(msgspec.Struct, kw_only=True):
    """Something that could not be recorded as it came, why, and what was done about it since."""

    id: str
    source: str
    code: Annotated[
        str, Meta(description="Why, machine-readable; `conflict` means the key was used with another payload.")
    ]
    message: Annotated[str, SENTENCE]
    received_at: Instant
    form: Annotated[str, Meta(description="How to read the payload: event, segment, cloudevents, table, text …")]
    payload: Annotated[Any, Meta(description="As it came."), FREE]
    status: Annotated[str, Meta(description="open, resubmitted or dismissed.")]
    envelope: Annotated[
        EnvelopeView | None, Meta(description="What came beside it, and is read with it when it is re-submitted.")
    ] = None
    event_id: Annotated[str, Meta(description="For a conflict the event that holds the key.")] = ""
    resolution: Annotated[str, Meta(description="The event that came of a re-submission, or why it was dismissed.")] = (
        ""
    )


def rejected_view(entry: RejectedEntry) -> RejectedView:
    """The form in which an entry is read."""
    payload = entry.payload
    if entry.form == "segment" and isinstance(payload, dict):
        # Entries of older versions may hold one, and those who read are not those who write.
        payload = {name: value for name, value in payload.items() if name != "writeKey"}
    return RejectedView(
        id=entry.id,
        source=entry.source,
        code=entry.code,
        message=entry.message,
        received_at=instant(entry.received_at),
        form=entry.form,
        payload=payload,
        status=entry.status,
        envelope=None if entry.envelope is None else _envelope_view(entry.envelope),
        event_id=entry.event_id,
        resolution=entry.resolution,
    )


def _envelope_view(envelope: Envelope) -> EnvelopeView:
    return EnvelopeView(
        kind=envelope.kind,
        sent_at=None if envelope.sent is None else instant(envelope.sent),
        context=envelope.context,
        integrations=envelope.integrations,
        historical=envelope.historical,
    )
