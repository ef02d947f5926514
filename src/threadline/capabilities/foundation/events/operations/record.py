"""Recording events, each exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events import recording
from threadline.capabilities.foundation.events.forms import NativeEvent
from threadline.capabilities.foundation.events.recording import Draft, draft
from threadline.kernel.event import Event, Receipt
from threadline.kernel.event_limits import check_event_count
from threadline.kernel.limits import BATCH_EVENTS_MAX
from threadline.kernel.operation import Context, Intake, Params, operation
from threadline.kernel.rejected import RejectedEntry

_EVENT_SCHEMA = msgspec.json.schema_components((NativeEvent,))[1]["NativeEvent"]


class RecordParams(Params, kw_only=True):
    """Events to record. Each has its own outcome: one that is not well formed is rejected and stops no neighbour."""

    # Any, because a value of another type is the outcome of its event, and not the end of the request.
    events: Annotated[list[Any], Meta(extra_json_schema={"maxItems": BATCH_EVENTS_MAX, "items": _EVENT_SCHEMA})]


class RecordResult(msgspec.Struct, kw_only=True):
    """The outcome of each event, in order. The answer means that what was accepted is durable."""

    receipts: list[Receipt]
    accepted: int
    duplicates: int
    conflicts: int
    rejected: int


def _drafts(context: Context, params: RecordParams) -> list[Draft | RejectedEntry]:
    """The events of a request, stamped with its way in. Raises `LimitExceeded` if there are too many."""
    check_event_count(len(params.events))
    return [
        draft(
            value,
            workspace=context.workspace,
            source=context.source,
            source_type=context.source_type,
            received_at=context.engine.recorder.clock(),
            label=f"events[{index}]",
        )
        for index, value in enumerate(params.events)
    ]


def _taken_in(context: Context, params: RecordParams) -> list[Event | RejectedEntry]:
    return [item.event if isinstance(item, Draft) else item for item in _drafts(context, params)]


def _without(params: RecordParams, refused: Collection[int]) -> RecordParams:
    return RecordParams(events=[event for index, event in enumerate(params.events) if index not in refused])


def _result(receipts: list[Receipt]) -> RecordResult:
    counts = Counter(receipt.status for receipt in receipts)
    return RecordResult(
        receipts=receipts,
        accepted=counts["accepted"],
        duplicates=counts["duplicate"],
        conflicts=counts["conflict"],
        rejected=counts["rejected"],
    )


def _refused(result: RecordResult) -> bool:
    return bool(result.receipts) and not result.accepted + result.duplicates


@operation(
    "POST /v1/events",
    scope="write",
    example=RecordParams(
        events=[
            {
                "type": "purchase_completed",
                "identifiers": {"user_id": "42"},
                "key": "order-1001",
                "occurred_at": "2026-03-01T12:00:00Z",
                "properties": {"total": 29.33, "currency": "EUR"},
            }
        ]
    ),
    refused=_refused,
    intake=Intake(_taken_in, "events", _without, lambda result: list(result.receipts), _result),
)
def record(context: Context, params: RecordParams) -> RecordResult:
    """Record events, each exactly once."""
    return _result(recording.record(context.engine, _drafts(context, params)))
