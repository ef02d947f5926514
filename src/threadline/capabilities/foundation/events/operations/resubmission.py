"""A rejected event recorded after all: re-submitted as it is or corrected; or its entry dismissed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from threadline.capabilities.foundation.events.forms import NativeEvent, native_event
from threadline.capabilities.foundation.events.operations import REJECTED_GROUP
from threadline.capabilities.foundation.events.operations.rejected import EntryId
from threadline.capabilities.foundation.events.recording import NATIVE_FORM, read_native
from threadline.capabilities.foundation.events.rejected import RejectedView, rejected_view
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import CLAIMED_HISTORY, Event, Identifier, Receipt, source_type_of
from threadline.kernel.operation import Choice, Context, Intake, Params, operation
from threadline.kernel.ports import Ports
from threadline.kernel.rejected import ROW_FORM, Reader, RejectedEntry, StoredEntry
from threadline.kernel.typed import prepared


class ResubmitParams(Params, kw_only=True):
    """What to record in place of what was rejected: a corrected event, a corrected payload, or the payload as it is."""

    id: EntryId
    event: Annotated[
        NativeEvent | None,
        Meta(description="The correction in Threadline's own form. Without a key it takes that of the rejected event."),
    ] = None
    payload: Annotated[Any, Meta(description="The correction in the form in which the entry came.")] = UNSET


class ResubmitResult(msgspec.Struct, kw_only=True):
    """The receipt, and the entry: settled if the event is in the log now, still open if it was refused again."""

    receipt: Receipt
    entry: RejectedView


def resubmitted(engine: Ports, workspace: str, params: ResubmitParams) -> tuple[Event, StoredEntry]:
    """The event that a request wants recorded, and the entry that it would settle. Writes nothing.

    Raises `NotFound`, and `InvalidValue` or `EventRejected` for what makes no event.
    """
    stored: StoredEntry = engine.rejected.entry(workspace, params.id)
    if params.event is not None:
        return _corrected(params.event, stored.entry), stored
    payload = stored.entry.payload if isinstance(params.payload, UnsetType) else params.payload
    return _reread(engine, payload, stored.entry), stored


def _taken_in(context: Context, params: ResubmitParams) -> list[Event]:
    event, stored = resubmitted(context.engine, context.workspace, params)
    return [event] if stored.entry.status == "open" else []


@operation(
    "POST /v1/rejected/{id}/resubmit",
    REJECTED_GROUP,
    intake=Intake(_taken_in),
    choices=(Choice(("event", "payload")),),
    scope="admin",
    example=ResubmitParams(
        id="0123456789abcdef0123456789abcdef",
        event=NativeEvent(type="purchase_completed", identifiers={"user_id": "42"}, key="order-1001"),
    ),
    refused=lambda result: result.receipt.status not in ("accepted", "duplicate"),
)
def resubmit(context: Context, params: ResubmitParams) -> ResubmitResult:
    """Record a rejected event, corrected or as it is, and close its entry."""
    event, stored = resubmitted(context.engine, context.workspace, params)
    expected = None if params.event is None else params.event.expected
    receipt, entry = context.engine.rejected.resubmit(stored, event, expected=expected)
    return ResubmitResult(receipt=receipt, entry=rejected_view(entry))


def _corrected(native: NativeEvent, entry: RejectedEntry) -> Event:
    if not native.key:
        native = msgspec.structs.replace(native, key=_free_key(entry, entry.key or _key_of(entry.payload)))
    if entry.form == ROW_FORM:
        native = msgspec.structs.replace(native, historical=True)
    # It reached us when it was rejected, so that is when it occurred where it tells no time of its own.
    return native_event(
        native, workspace=entry.workspace, source=entry.source, source_type=_way(entry), received_at=entry.received_at
    )


def _free_key(entry: RejectedEntry, key: str) -> str:
    """The key under which a correction can be recorded: that of a conflict belongs to the event that came first."""
    return f"resubmitted/{entry.id}" if entry.code == "conflict" or not key else key


def _key_of(payload: Any) -> str:
    if isinstance(payload, dict):
        for name in ("key", "messageId", "id"):
            if isinstance(payload.get(name), str):
                return str(payload[name])
    return ""


def _reread(engine: Ports, payload: Any, entry: RejectedEntry) -> Event:
    readers: Mapping[str, Reader] = engine.rejected.readers
    reader = _READERS.get(entry.form) or readers.get(entry.form)
    if reader is None:
        raise InvalidValue(
            f"a payload of the form {entry.form!r} cannot be read again here; give the correction as `event`"
        )
    event = reader(payload, entry)
    return msgspec.structs.replace(
        event,
        marks=_marks(event, vouched=payload is not entry.payload),
        workspace=entry.workspace,
        source=entry.source,
        key=_free_key(entry, event.key),
        received_at=entry.received_at,
    )


def _marks(event: Event, *, vouched: bool) -> tuple[str, ...]:
    """The marks of an event that was read again: whoever writes its payload vouches for the history that it tells."""
    marks = tuple(mark for mark in event.marks if mark != CLAIMED_HISTORY)
    return (*marks, CLAIMED_HISTORY) if event.historical and not vouched else marks


@prepared
class _NativePayload(msgspec.Struct):
    """The form in which the engine keeps an event that it rejected: an `Event` by the names of its fields."""

    type: str
    occurred_at: int
    key: str
    identifiers: list[tuple[str, str]]
    properties: dict[str, Any] = {}
    context: dict[str, Any] = {}
    sent_time: int | None = None
    marks: tuple[str, ...] = ()
    historical: bool = False
    schema_version: str = ""
    object_id: str = ""
    object_ref: str = ""
    wire: dict[str, Any] = {}


def _read_native(payload: Any, entry: RejectedEntry) -> Event:
    return native_event(
        read_native(payload, "payload"),
        workspace=entry.workspace,
        source=entry.source,
        source_type=_way(entry),
        received_at=entry.received_at,
        label="payload",
    )


def _read_event(payload: Any, entry: RejectedEntry) -> Event:
    try:
        read = msgspec.convert(payload, _NativePayload)
    except msgspec.ValidationError as error:
        raise InvalidValue(f"the payload does not make an event ({error}); give the correction as `event`") from None
    # The time that the producer told stays as it was, whatever is corrected: the producer's own retry must be known.
    return Event(
        type=read.type,
        identifiers=tuple(Identifier(kind, value) for kind, value in read.identifiers),
        occurred_at=read.occurred_at,
        key=read.key,
        source_type=_source_type(read, entry),
        properties=read.properties,
        context=read.context,
        sent_time=read.sent_time,
        marks=read.marks,
        historical=read.historical,
        schema_version=read.schema_version,
        object_id=read.object_id,
        object_ref=read.object_ref,
        wire=read.wire,
    )


def _source_type(read: _NativePayload, entry: RejectedEntry) -> str:
    """Which way it came, as the entry says: what Threadline has told itself cannot be made up in a correction."""
    original = entry.payload if isinstance(entry.payload, dict) else {}
    if original.get("source_type") == "internal" and read.type == original.get("type"):
        return "internal"
    return _way(entry)


def _way(entry: RejectedEntry) -> str:
    """Whether this very process told it, or somebody over a wire."""
    original = entry.payload if entry.form == "event" and isinstance(entry.payload, dict) else {}
    return "direct" if (original.get("source_type") or source_type_of(entry.source)) == "direct" else "external"


_READERS: Mapping[str, Reader] = {"event": _read_event, NATIVE_FORM: _read_native}
"""Of the forms that the engine and the native operations keep; those of the wires come with them."""


# --- dismiss ----------------------------------------------------------------------------------


class DismissParams(Params, kw_only=True):
    """Which entry to close without recording anything, and why."""

    id: EntryId
    reason: Annotated[str, Meta(description="Why, for those who read it later.", max_length=500)] = ""


@operation(
    "POST /v1/rejected/{id}/dismiss",
    REJECTED_GROUP,
    done=("Dismissed a rejected event",),
    scope="admin",
    example=DismissParams(id="0123456789abcdef0123456789abcdef", reason="a test of ours"),
)
def dismiss(context: Context, params: DismissParams) -> RejectedView:
    """Close an entry of the rejected log without recording it."""
    stored = context.engine.rejected.entry(context.workspace, params.id)
    return rejected_view(context.engine.rejected.dismiss(stored, params.reason))
