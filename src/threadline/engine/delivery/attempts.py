"""Attempts to carry out effects, with what was sent and what came back: written with the outcome, for two weeks.

Those that failed and those that did not have a bound each, so that a busy destination does not push out the failures of
another one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

import msgspec

from threadline.engine.folding.packing import pack, unpack
from threadline.engine.scheduled import OUTBOX, outbox_key, pack_effect, pending_effect
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.limits import DELIVERIES_DAYS, DELIVERIES_MAX, PAGE_ITEMS_MAX
from threadline.kernel.outbox import Attempt, PendingEffect
from threadline.kernel.sender import Exchange, Outcome
from threadline.kernel.store import Batch, Delete, Item, Key, Put, Store, query_pages
from threadline.kernel.time import DAY, time_key, time_of_key

ATTEMPT = "delivery_attempt"
"""Table: attempts under the thread that they are about."""
ATTEMPT_TIME = "delivery_attempt_time"
"""Table: which there are in a workspace by time, those that failed and those that did not apart."""
TRIM_EVERY = 50
"""Attempts of a process after which it takes away what is beyond the bounds."""
_DELETED_AT_ONCE = 40


def attempt_puts(
    pending: PendingEffect, queue: str, outcome: Outcome, type: str, now: int, next_at: int
) -> tuple[Put, ...]:
    """The writes of an attempt, for the commit of its outcome; none where its sender shows nothing."""
    exchange = outcome.exchange
    if exchange is None:
        return ()
    before = pending._replace(claim=None, postponed=0)
    attempt = Attempt(now, before, queue or pending.effect.queue, type, next_at, exchange)
    at = (pending.item.key.partition, pending.item.key.sort)
    shown = msgspec.to_builtins(exchange)
    record = pack((at, pack_effect(before), attempt.queue, type, next_at, shown))
    row = pack((pending.thread, attempt.queue))
    return Put(Key(ATTEMPT, pending.thread, attempt.id), record), Put(_row(pending.workspace, attempt), row)


def page(store: Store, workspace: str, queue: str, delivered: bool | None, before: str, limit: int) -> list[Attempt]:
    """Attempts, the newest first, before an id; of one queue ("": of all), delivered or not (None: both)."""
    partitions = [_partition(workspace, kind) for kind in (True, False) if delivered in (None, kind)]
    rows = heapq.merge(
        *(_backwards(store, partition, before) for partition in partitions), key=lambda row: row.key.sort, reverse=True
    )
    attempts: list[Attempt] = []
    for row in rows:
        thread, of = unpack(row.value)
        if queue in ("", of) and (item := store.get([Key(ATTEMPT, thread, row.key.sort)])[0]) is not None:
            attempts.append(_attempt(item))
            if len(attempts) == limit:
                break
    return attempts


def attempt(store: Store, workspace: str, id: str) -> Attempt:
    """One attempt; raises `NotFound`."""
    for row in store.get([Key(ATTEMPT_TIME, _partition(workspace, kind), id) for kind in (True, False)]):
        item = None if row is None else store.get([Key(ATTEMPT, unpack(row.value)[0], id)])[0]
        if item is not None:
            return _attempt(item)
    raise NotFound(f"there is no delivery {id[:80]!r}, or it is older than {DELIVERIES_DAYS} days")


def attempts_of(store: Store, threads: Iterable[str]) -> Iterator[Attempt]:
    """The attempts about somebody who has these threads."""
    return (_attempt(item) for thread in threads for item in query_pages(store, ATTEMPT, thread))


def keys(attempt: Attempt) -> tuple[Key, Key]:
    """What the store has of an attempt."""
    return Key(ATTEMPT, attempt.pending.thread, attempt.id), _row(attempt.pending.workspace, attempt)


def send_again(store: Store, last: Attempt, now: int) -> bool:
    """Make due now what was attempted: what waits for its next attempt, or once more what was delivered; whether it is.

    A dead letter is redriven instead. It has the id that it had, so a receiver that looks at ids takes it once. Two who
    ask, at once or before it is sent, send it once: the attempt is written anew, with the instant at which it is due.
    """
    pending = last.pending
    key = Key(ATTEMPT, pending.thread, last.id)
    item = store.get([key])[0]
    rows = store.query(ATTEMPT, pending.thread, start=f"{last.id}!", limit=PAGE_ITEMS_MAX)
    if item is None or any(_attempt(row).pending.id == pending.id for row in rows):
        raise Conflict("it was attempted again since; look at the last delivery")
    next_at = _attempt(item).next_at
    partition = pending.item.key.partition
    due = outbox_key(partition, now, pending.order, pending.id)
    # From now on it says when it is tried again, for whoever asks next.
    asked = Put(key, _with_next(item.value, now), item.version)
    if next_at:
        waiting = store.get([outbox_key(partition, next_at, pending.order, pending.id)])[0]
        if waiting is None or next_at <= now:
            raise Conflict("it is due already or being sent, or an operator has changed it; look again")
        writes: list[Put | Delete] = [Delete(waiting.key, waiting.version), Put(due, waiting.value, 0), asked]
    else:
        attempts = pending.attempts + 1
        again = pending._replace(attempts=attempts, since=now, began=attempts)
        writes = [Put(due, pack_effect(again), 0), asked]
    return store.commit([Batch(writes=writes)])[0] is None


def trim(store: Store, workspace: str, now: int) -> None:
    """Take away what is too old, and what is too much."""
    for kind in (True, False):
        rows = list(query_pages(store, ATTEMPT_TIME, _partition(workspace, kind)))
        oldest = time_key(max(now - DELIVERIES_DAYS * DAY, 0))
        beyond = max(sum(row.key.sort < oldest for row in rows), len(rows) - DELIVERIES_MAX)
        deletes = [
            Delete(key) for row in rows[:beyond] for key in (row.key, Key(ATTEMPT, unpack(row.value)[0], row.key.sort))
        ]
        for start in range(0, len(deletes), _DELETED_AT_ONCE):
            store.commit([Batch(writes=deletes[start : start + _DELETED_AT_ONCE])])


def _attempt(item: Item) -> Attempt:
    (partition, sort), effect, queue, outcome, next_at, shown = unpack(item.value)
    pending = pending_effect(Item(Key(OUTBOX, partition, sort), 0, effect))
    at = time_of_key(item.key.sort.partition(".")[0])
    return Attempt(at, pending, queue, outcome, next_at, msgspec.convert(shown, Exchange))


def _with_next(record: bytes, next_at: int) -> bytes:
    *fields, _, shown = unpack(record)
    return pack((*fields, next_at, shown))


def _partition(workspace: str, delivered: bool) -> str:
    return f"{workspace}/{'delivered' if delivered else 'failed'}"


def _row(workspace: str, attempt: Attempt) -> Key:
    return Key(ATTEMPT_TIME, _partition(workspace, attempt.is_delivered), attempt.id)


def _backwards(store: Store, partition: str, before: str) -> Iterator[Item]:
    end = before or None
    while rows := store.query(ATTEMPT_TIME, partition, "", end, 100, reverse=True):
        yield from rows
        end = rows[-1].key.sort
