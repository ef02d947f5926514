"""What came of timers and effects: events of Threadline's own, committed with what they take off the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from threadline.engine.ask import Asker
from threadline.engine.record import FENCED, Recorder
from threadline.engine.screen import Request
from threadline.engine.wishes import DISPATCH
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import Batch

_KNOWN = ("duplicate", "conflict")


def identifier_of(asker: Asker, thread: str) -> Identifier | None:
    """The identifier that a thread is the thread of; None if nobody has it."""
    person = asker.by_thread(thread)
    return None if person is None else person.identifiers[thread]


class Settled(NamedTuple):
    """What became of items that were due."""

    done: int
    """How many are off the table."""
    unfit: list[tuple[int, str]]
    """Which of the requests cannot be recorded, now or at the next attempt, and why. Their items are still there."""


def settle(recorder: Recorder, requests: Sequence[Request]) -> Settled:
    """Record what came of items that were due, each in the commit that takes its item off the table."""
    receipts = recorder.record(requests)
    # Its event is in the log already: nothing is recorded again, but the item must go, or it would be due for ever.
    again = [each for each, receipt in zip(requests, receipts, strict=True) if receipt.status in _KNOWN]
    refusals = recorder.store.commit([Batch(writes=each.writes) for each in again]) if again else []
    unfit = [
        (place, f"{receipt.code}: {receipt.message}")
        for place, receipt in enumerate(receipts)
        if receipt.status == "rejected" and receipt.code != FENCED
    ]
    return Settled(sum(receipt.status == "accepted" for receipt in receipts) + refusals.count(None), unfit)


def internal(workspace: str, identifier: Identifier, type: str, key: str, at: int, properties: dict[str, Any]) -> Event:
    """An event that the dispatcher tells."""
    return Event(
        type=type,
        identifiers=(identifier,),
        occurred_at=at,
        key=key,
        source=DISPATCH,
        source_type="internal",
        workspace=workspace,
        properties=properties,
    )
