"""Recording events, each exactly once."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import NativeEvent, native_event
from threadline.kernel.event import Event, Receipt
from threadline.kernel.event_limits import too_many_events
from threadline.kernel.limits import BATCH_EVENTS_MAX
from threadline.kernel.operation import Context, Intake, Operation
from threadline.kernel.ports import WithRecorder


class RecordParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Events to record. A request with an ill-formed event is refused whole; well-formed ones are judged one by one."""

    events: Annotated[list[NativeEvent], Meta(extra_json_schema={"maxItems": BATCH_EVENTS_MAX})]


class RecordResult(msgspec.Struct, kw_only=True):
    """What became of each event, in order. The answer means that what was accepted is durable."""

    receipts: list[Receipt]
    accepted: int
    duplicates: int
    conflicts: int
    rejected: int


def _events_of(context: Context[WithRecorder], params: RecordParams) -> list[Event]:
    """The events of a request, stamped with its way in; raises `EventRejected` if one is not well formed, or there
    are too many."""
    if len(params.events) > BATCH_EVENTS_MAX:
        raise too_many_events()
    return [
        native_event(
            native,
            workspace=context.workspace,
            source=context.source,
            source_type=context.source_type,
            received_at=context.engine.recorder.clock(),
            place=f"events[{index}]",
        )
        for index, native in enumerate(params.events)
    ]


def _without(params: RecordParams, refused: Collection[int]) -> RecordParams:
    return RecordParams(events=[each for place, each in enumerate(params.events) if place not in refused])


def _record(context: Context[WithRecorder], params: RecordParams) -> RecordResult:
    # Nothing is recorded before every event is known to be well formed.
    events = _events_of(context, params)
    receipts: list[Receipt] = []
    pairs = zip(params.events, events, strict=True)
    for expected, group in itertools.groupby(pairs, key=lambda pair: pair[0].expected):
        receipts += context.engine.recorder.record([event for _, event in group], expected=expected)
    return _result(receipts)


def _result(receipts: list[Receipt]) -> RecordResult:
    counts = Counter(receipt.status for receipt in receipts)
    return RecordResult(
        receipts=receipts, accepted=counts["accepted"], duplicates=counts["duplicate"], conflicts=counts["conflict"],
        rejected=counts["rejected"],
    )  # fmt: skip


def _refused(result: RecordResult) -> bool:
    return bool(result.receipts) and not result.accepted + result.duplicates


RECORD = Operation(
    name="record",
    summary="Record events, each exactly once.",
    params=RecordParams,
    result=RecordResult,
    run=_record,
    method="POST",
    path="/v1/events",
    scope="write",
    example=RecordParams(
        events=[
            NativeEvent(
                type="purchase_completed", identifiers={"user_id": "42"}, key="order-1001",
                occurred_at="2026-03-01T12:00:00Z", properties={"total": 29.33, "currency": "EUR"},
            )
        ]
    ),
    refused=_refused,
    intake=Intake(_events_of, _without, lambda result: list(result.receipts), _result),
)  # fmt: skip
