"""What follows from an outcome: the event about it, in the commit that takes the effect out of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from threadline.engine.delivery.attempts import attempt_puts
from threadline.engine.delivery.dead_letters import dead_letter_puts
from threadline.engine.delivery.outcomes import identifier_of, internal, settle
from threadline.engine.delivery.retry_schedule import Retry, fate_of
from threadline.engine.delivery.unknown import unknown_deletes, unknown_puts
from threadline.engine.folding.packing import pack
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.validation import RecordRequest
from threadline.engine.scheduled import moved, outbox_key, pack_effect
from threadline.kernel.event import Identifier
from threadline.kernel.limits import LOGGED_EVENT_BYTES_MAX
from threadline.kernel.outbox import PendingEffect, UnknownEffect
from threadline.kernel.rejected import as_text, writable
from threadline.kernel.sender import EFFECT_DONE, EFFECT_PARKED, EFFECT_RETRIED, EFFECT_UNKNOWN, Outcome, Queue
from threadline.kernel.store import Check, Delete, Put
from threadline.kernel.time import format_time, parse_time


def request_of(
    queue: Queue,
    pending: PendingEffect,
    identifier: Identifier,
    outcome: Outcome,
    now: int,
    gone: Sequence[Delete | Check],
) -> RecordRequest:
    """The request that records an outcome; ``gone`` takes the effect away from where it is now."""
    type, extra, put = _fate(queue, pending, outcome, now)
    properties = {
        "effect": pending.id,
        "kind": pending.effect.kind,
        "policy": pending.policy,
        "cause": pending.cause,
        **outcome.properties,
        **extra,
    }
    event = internal(pending.workspace, identifier, type, f"{pending.id}/{pending.attempts}", now, properties)
    next_at = parse_time(extra["retry_at"]) if "retry_at" in extra else 0
    attempt = attempt_puts(pending, queue.name, outcome, type, now, next_at)
    return RecordRequest(event, pending.cause, None, (*gone, *put, *attempt), known=True)


def _fate(
    queue: Queue, pending: PendingEffect, outcome: Outcome, now: int
) -> tuple[str, dict[str, Any], tuple[Put, ...]]:
    """The type of the event, its further properties, and the writes."""
    # It may be due later than now: then a clock that was ahead has put it off.
    tried = pending._replace(attempts=pending.attempts + 1, since=min(pending.since, now))
    # What it was about, such as the template of a mail: the sender's answer says how it went and no more.
    known = {**(pending.claim.properties if pending.claim is not None else {}), **outcome.properties}
    if outcome.type == EFFECT_UNKNOWN and pending.claim is not None:
        why = str(outcome.properties.get("why", ""))
        return EFFECT_UNKNOWN, known, unknown_puts(tried, queue.name or pending.effect.queue, why, now)
    if outcome.retry_after_seconds is None and not outcome.parked:
        return outcome.type, {}, ()
    tried = tried._replace(claim=None)
    fate = fate_of(queue, tried._replace(attempts=pending.attempts), outcome, now)
    if not isinstance(fate, Retry):
        return (
            EFFECT_PARKED,
            {**known, "why": fate.why},
            dead_letter_puts(tried, queue.name, fate.why, outcome.properties, now),
        )
    key = outbox_key(pending.item.key.partition, fate.at, pending.order, pending.id)
    return EFFECT_RETRIED, {"retry_at": format_time(fate.at)}, (Put(key, pack_effect(tried), 0),)


def resolve(recorder: Recorder, reader: PersonReader, unknown: UnknownEffect, outcome: Outcome | None, by: str) -> bool:
    """Settle an unknown effect as if its sender had returned this outcome, None: that it happened; whether it was.

    Two who resolve the same one do it once.
    """
    identifier = identifier_of(reader, unknown.pending.thread)
    if identifier is None:
        return False
    queues, now = recorder.catalogue.queues, recorder.clock()
    claim = unknown.pending.claim
    if outcome is None:
        outcome = Outcome(type=EFFECT_DONE) if claim is None else Outcome(type=claim.type, properties=claim.properties)
    outcome = fitting(replace(outcome, properties={**outcome.properties, "by": by}))
    # It starts anew: what was unknown for long is not given up on for that.
    pending = moved(unknown.pending._replace(since=now, began=unknown.pending.attempts), queues, unknown.queue)
    queue = queues.get(unknown.queue, Queue(unknown.queue))
    return settle(recorder, [request_of(queue, pending, identifier, outcome, now, unknown_deletes(unknown))]).done > 0


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
