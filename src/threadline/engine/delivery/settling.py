"""What follows from an outcome: the event about it, in the commit that takes the effect out of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from threadline.engine.delivery.dead_letters import dead_letter_puts
from threadline.engine.delivery.outcomes import identifier_of, internal, settle
from threadline.engine.delivery.retry_schedule import Retry, fate_of
from threadline.engine.delivery.unknown import unknown_deletes, unknown_puts
from threadline.engine.folding.packing import pack
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.validation import RecordRequest
from threadline.engine.scheduled import moved, pack_effect
from threadline.kernel.event import Identifier
from threadline.kernel.limits import LOGGED_EVENT_BYTES_MAX
from threadline.kernel.outbox import PendingEffect, UnknownEffect
from threadline.kernel.rejected import as_text, writable
from threadline.kernel.sender import EFFECT_DONE, EFFECT_PARKED, EFFECT_RETRIED, EFFECT_UNKNOWN, Outcome, Queue
from threadline.kernel.store import Check, Delete, Put
from threadline.kernel.time import format_time, time_key


def request_of(
    queue: Queue, one: PendingEffect, identifier: Identifier, outcome: Outcome, now: int,
    gone: Sequence[Delete | Check],
) -> RecordRequest:  # fmt: skip
    """The request that records an outcome; ``gone`` takes the effect away from where it is now."""
    type, extra, put = _fate(queue, one, outcome, now)
    properties = {
        "effect": one.id, "kind": one.effect.kind, "policy": one.policy, "cause": one.cause, **outcome.properties,
        **extra,
    }  # fmt: skip
    event = internal(one.workspace, identifier, type, f"{one.id}/{one.attempts}", now, properties)
    return RecordRequest(event, one.cause, None, (*gone, *put), known=True)


def _fate(queue: Queue, one: PendingEffect, outcome: Outcome, now: int) -> tuple[str, dict[str, Any], tuple[Put, ...]]:
    """The type of the event, its further properties, and the writes."""
    # It may be due later than now: then a clock that was ahead has put it off.
    tried = one._replace(attempts=one.attempts + 1, since=min(one.since, now))
    if outcome.type == EFFECT_UNKNOWN and one.claim is not None:
        known = {**one.claim.properties, **outcome.properties}
        why = str(outcome.properties.get("why", ""))
        return EFFECT_UNKNOWN, known, unknown_puts(tried, queue.name or one.effect.queue, why, now)
    if outcome.retry_after_seconds is None and not outcome.parked:
        return outcome.type, {}, ()
    tried = tried._replace(claim=None)
    fate = fate_of(queue, tried._replace(attempts=one.attempts), outcome, now)
    if not isinstance(fate, Retry):
        return EFFECT_PARKED, {"why": fate.why}, dead_letter_puts(tried, queue.name, fate.why, outcome.properties, now)
    key = one.item.key._replace(sort=f"{time_key(fate.at)}.{one.id}")
    return EFFECT_RETRIED, {"retry_at": format_time(fate.at)}, (Put(key, pack_effect(tried), 0),)


def resolve(recorder: Recorder, reader: PersonReader, found: UnknownEffect, outcome: Outcome | None, by: str) -> bool:
    """Settle an unknown effect as if its sender had returned this outcome, None: that it happened; whether it was.

    Two who resolve the same one do it once.
    """
    identifier = identifier_of(reader, found.one.thread)
    if identifier is None:
        return False
    queues, now = recorder.catalogue.queues, recorder.clock()
    claim = found.one.claim
    if outcome is None:
        outcome = Outcome(type=EFFECT_DONE) if claim is None else Outcome(type=claim.type, properties=claim.properties)
    outcome = fitting(replace(outcome, properties={**outcome.properties, "by": by}))
    # It starts anew: what was unknown for long is not given up on for that.
    one = moved(found.one._replace(since=now, began=found.one.attempts), queues, found.queue)
    queue = queues.get(found.queue, Queue(found.queue))
    return settle(recorder, [request_of(queue, one, identifier, outcome, now, unknown_deletes(found))]).done > 0


def fitting(outcome: Outcome) -> Outcome:
    """The outcome; where no store could hold it, its text, cut.

    It must be settled like any other: were it lost, its effect would be sent again and again.
    """
    try:
        if len(pack((outcome.type, outcome.properties, outcome.parked))) <= LOGGED_EVENT_BYTES_MAX:
            return outcome
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return replace(
        outcome, type=writable(outcome.type), parked=writable(outcome.parked), properties={"told": as_text(outcome)}
    )
