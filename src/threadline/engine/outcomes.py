"""What came of timers and effects: events of Threadline's own, committed with what they take off the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from threadline.engine.screen import Request
from threadline.engine.wishes import DISPATCH
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import Batch

if TYPE_CHECKING:
    from threadline.engine.engine import Engine

_KNOWN = ("duplicate", "conflict")


def identifier_of(engine: Engine, thread: str) -> Identifier | None:
    """The identifier that a thread is the thread of; None if nobody has it."""
    person = engine.asker.by_thread(thread)
    return None if person is None else person.identifiers[thread]


def settle(engine: Engine, requests: Sequence[Request]) -> int:
    """Record what came of items that were due; answers how many are off the table."""
    receipts = engine.recorder.record(requests)
    # Its event is in the log already: nothing is recorded again, but the item must go, or it would be due for ever.
    again = [each for each, receipt in zip(requests, receipts, strict=True) if receipt.status in _KNOWN]
    refusals = engine.store.commit([Batch(writes=each.writes) for each in again]) if again else []
    return sum(receipt.status == "accepted" for receipt in receipts) + refusals.count(None)


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
