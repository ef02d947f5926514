"""Effects that were given up on: kept, listed, and redriven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadline.engine.delivery.outcomes import identifier_of, internal, settle
from threadline.engine.folding.packing import pack, unpack
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.validation import RecordRequest
from threadline.engine.scheduled import (
    PARKED,
    PARKED_ROWS,
    moved,
    outbox_key,
    pack_effect,
    pending_effect,
    unrecorded_key,
)
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import Attempt, DeadLetter, PendingEffect
from threadline.kernel.sender import EFFECT_REDRIVEN
from threadline.kernel.store import Delete, Item, Key, Put, Store, beyond
from threadline.kernel.time import time_key


def dead_letter_puts(
    pending: PendingEffect, queue: str, why: str, details: dict[str, Any], now: int
) -> tuple[Put, ...]:
    """The writes of a dead letter; ``details`` are those of the last attempt's outcome."""
    key = _key(pending.workspace, queue or pending.effect.queue, now, pending.id)
    waits = pack_effect(pending._replace(claim=None, postponed=0))
    row = Put(_row(queue or pending.effect.queue, now, pending.id), pending.workspace.encode())
    return Put(key, pack((waits, pending.item.key.partition, why, now, details)), 0), row


def count(store: Store, queue: str) -> int:
    """How many are in a queue (""; in none), of all workspaces, to a page; those before there were rows apart."""
    return len(store.query(PARKED_ROWS, queue or "-", limit=PAGE_ITEMS_MAX))


def after_attempt(store: Store, last: Attempt) -> DeadLetter | None:
    """The dead letter that an attempt has left; None: it left none, or somebody has redriven it since."""
    key = _key(last.pending.workspace, last.queue, last.at, last.pending.id)
    item = store.get([key])[0]
    return None if item is None else _dead_letter(item)


def _key(workspace: str, queue: str, at: int, id: str) -> Key:
    return Key(PARKED, workspace, f"{queue or '-'}!{time_key(at)}.{id}")


def row_key(letter: DeadLetter) -> Key:
    """The key of the row by which a dead letter is counted."""
    return _row(letter.queue, letter.at, letter.pending.id)


def _row(queue: str, at: int, id: str) -> Key:
    return Key(PARKED_ROWS, queue or "-", f"{time_key(at)}.{id}")


def page(store: Store, workspace: str, queue: str, after: str, limit: int) -> list[DeadLetter]:
    """A page of the dead letters of a workspace, by queue and time; ``queue`` "" is all of them, "-" those of none."""
    start = beyond(after) if after else f"{queue}!" if queue else ""
    stop = f'{queue}"' if queue else None  # the sign after "!"
    return [_dead_letter(item) for item in store.query(PARKED, workspace, start=start, stop=stop, limit=limit)]


def redrive(recorder: Recorder, reader: PersonReader, letters: Sequence[DeadLetter], by: str) -> int:
    """Make dead letters due again, each with an event that says so; returns how many are.

    Their ids stay, so that a receiver recognises one that it has had. Two who redrive the same one do it once.
    """
    requests = [request for letter in letters if (request := _request(recorder, reader, letter, by)) is not None]
    return settle(recorder, requests).done


def _dead_letter(item: Item) -> DeadLetter:
    waits, partition, why, at, details = unpack(item.value)
    id = item.key.sort.partition(".")[2]
    key = outbox_key(partition, at, "", id)
    return DeadLetter(item, pending_effect(Item(key, 0, waits)), partition, why, at, details)


def _request(recorder: Recorder, reader: PersonReader, letter: DeadLetter, by: str) -> RecordRequest | None:
    pending = letter.pending
    identifier = identifier_of(reader, pending.thread)
    if identifier is None:
        return None
    now = recorder.clock()
    properties = {
        "effect": pending.id,
        "kind": pending.effect.kind,
        "policy": pending.policy,
        "cause": pending.cause,
        "by": by,
    }
    event = internal(
        pending.workspace, identifier, EFFECT_REDRIVEN, f"{pending.id}/{pending.attempts}", now, properties
    )
    # The queue may have gone out of the definitions meanwhile, or come into them.
    pending = moved(pending, recorder.catalogue.queues, letter.queue)
    attempts = pending.attempts + 1
    again = pack_effect(pending._replace(since=now, attempts=attempts, began=attempts))
    put = Put(outbox_key(pending.item.key.partition, now, pending.order, pending.id), again, 0)
    gone = (
        Delete(letter.item.key, letter.item.version),
        Delete(row_key(letter)),
        Delete(unrecorded_key(pending.workspace, pending.id)),
    )
    return RecordRequest(event, pending.cause, None, (*gone, put), known=True)
