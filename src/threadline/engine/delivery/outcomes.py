"""Outcomes of timers and effects: events of Threadline's own, in the commit that removes the item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

from threadline.engine.folding.packing import unpack_event
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.validation import BEING_ERASED, FENCED, RecordRequest
from threadline.engine.scheduled import (
    OUTBOX,
    due_effects,
    pending_effect,
    postponed_key,
    queue_partition,
    shard_of,
    unrecorded_key,
)
from threadline.kernel.event import Event, Identifier, Recorded, event_id, marks_of
from threadline.kernel.outbox import CausedEffect, EffectStatus
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_REDRIVEN, EFFECT_RETRIED, EFFECT_UNKNOWN
from threadline.kernel.store import Batch, Store, query_pages
from threadline.kernel.time import time_key
from threadline.kernel.why import LIVE, Why

DISPATCH = "threadline.dispatch"
"""The source of these events."""
WAITING_LOOKED_AT_MAX = 10_000
"""Effects that wait, by when they are due, among which those of an event are looked for."""
_KNOWN = ("duplicate", "conflict")
_WAITING = (EFFECT_RETRIED, EFFECT_REDRIVEN)


def identifier_of(reader: PersonReader, thread: str) -> Identifier | None:
    """The identifier of a thread; None if nobody has it."""
    person = reader.by_thread(thread)
    return None if person is None else person.identifiers[thread]


class Settled(NamedTuple):
    """The result of settling due items."""

    done: int
    """How many items are removed."""
    unfit: list[tuple[int, str]]
    """Which of the requests cannot be recorded, now or at the next attempt, and why. Their items are still there."""
    conflicting: list[int]
    """Which of them found that another process has their item."""


def settle(recorder: Recorder, requests: Sequence[RecordRequest]) -> Settled:
    """Record the outcomes of due items, each in the commit that removes its item."""
    receipts = recorder.record_requests(requests)
    # Its event is in the log already: nothing is recorded again, but the item must go, or it would be due for ever.
    again = [index for index, receipt in enumerate(receipts) if receipt.status in _KNOWN]
    refusals = recorder.store.commit([Batch(writes=requests[index].writes) for index in again]) if again else []
    refused = [index for index, refusal in zip(again, refusals, strict=True) if refusal is not None]
    unfit, fenced = [], []
    for index, receipt in enumerate(receipts):
        if receipt.status == "rejected":
            if receipt.code in (FENCED, BEING_ERASED):
                # Of a person who is being erased the item goes with the rest.
                fenced.append(index)
            else:
                unfit.append((index, f"{receipt.code}: {receipt.message}"))
    return Settled(len(receipts) - len(refused) - len(unfit) - len(fenced), unfit, refused + fenced)


def internal(
    workspace: str, identifier: Identifier, type: str, key: str, at: int, properties: dict[str, Any], why: Why = LIVE
) -> Event:
    """An event that the dispatcher records."""
    return Event(
        type=type,
        identifiers=(identifier,),
        occurred_at=at,
        key=key,
        source=DISPATCH,
        source_type="internal",
        workspace=workspace,
        properties=properties,
        marks=marks_of(why),
    )


def effect_of(store: Store, queues: Iterable[str], workspace: str, id: str, at: int) -> EffectStatus:
    """The effect of an id that was emitted at an instant, to be sent at once; ``queues`` are those declared."""
    outcomes: list[Recorded] = []
    for number in count():
        tried = event_id(workspace, DISPATCH, f"{id}/{number}")
        entry = store.find([tried]).get(tried)
        if entry is not None:
            outcomes.append(unpack_event(entry))
        elif not store.seen([tried]):
            break
    last = outcomes[-1].event.type if outcomes else ""
    if store.get([unrecorded_key(workspace, id)])[0] is not None or last == EFFECT_PARKED:
        return EffectStatus(id, False, True, outcomes)
    if outcomes:
        return EffectStatus(id, last in _WAITING, False, outcomes, last == EFFECT_UNKNOWN)
    partitions = [shard_of(id), *map(queue_partition, queues)]
    waits = store.get([postponed_key(workspace, id)])[0] is not None or any(
        _is_due(store, partition, id, at) for partition in partitions
    )
    return EffectStatus(id, waits, False, [])


def _is_due(store: Store, partition: str, id: str, at: int) -> bool:
    """Whether an effect waits that is due at an instant, among those that are due with it."""
    due = query_pages(store, OUTBOX, partition, time_key(at), time_key(at + 1))
    return any(pending_effect(item).id == id for item in islice(due, WAITING_LOOKED_AT_MAX))


def caused_effects(store: Store, queues: Iterable[str] | None, events: Sequence[Recorded]) -> list[CausedEffect]:
    """The effects whose causes and outcomes are among these events, by policy; ``queues`` None: without what waits."""
    causes = {event.id for event in events}
    outcomes: dict[str, list[Recorded]] = {}
    for event in events:
        if event.event.source == DISPATCH and "effect" in event.event.properties:
            outcomes.setdefault(event.event.properties["effect"], []).append(event)
    effects = {}
    for id, made in outcomes.items():
        outcome, last = made[-1].event.properties, made[-1].event.type
        status = EffectStatus(id, last in _WAITING, last == EFFECT_PARKED, made, last == EFFECT_UNKNOWN)
        effects[id] = CausedEffect(outcome["cause"], outcome["policy"], outcome["kind"], {}, status)
    # None is due before its cause has happened, and what is due again has an outcome that says so.
    start = time_key(min(min(event.event.occurred_at, event.recorded_at) for event in events))
    for item in islice(due_effects(store, queues, start) if queues is not None else (), WAITING_LOOKED_AT_MAX):
        pending = pending_effect(item)
        if pending.cause in causes:
            status = EffectStatus(pending.id, True, False, outcomes.get(pending.id, []))
            effects[pending.id] = CausedEffect(
                pending.cause, pending.policy, pending.effect.kind, pending.effect.data, status
            )
    return sorted(effects.values(), key=lambda effect: (effect.policy, effect.status.id))
