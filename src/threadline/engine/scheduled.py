"""Effects in the outbox and timers: the key and the content of the item of each."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from threadline.engine.folding.packing import pack, unpack
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import Claim, PendingEffect
from threadline.kernel.policy import FIRED_HISTORY, FIRED_WHY, Effect, Timer
from threadline.kernel.store import Delete, Item, Key, Put, Store, query_pages
from threadline.kernel.time import TIME_KEY_LENGTH, time_key, time_of_key

OUTBOX = "outbox"
TIMER = "timer"
PARKED = "parked"
"""Table: effects that were given up on, under their workspace, by queue and time; and `unrecorded_key`."""
PARKED_ROWS = "parked_row"
"""Table: a row of each of these, of all workspaces, under its queue ("-": none) by time, for counting."""
POSTPONED = "postponed"
"""Table: where effects wait that were postponed before their first attempt."""
SHARDS = 16
"""Partitions of the outbox and of the timers, so that no single one takes every write."""
_PAGE_ITEMS = 100
"""Read at a time of each partition."""


def shard_of(id: str) -> str:
    """The partition of a (hashed) id."""
    return f"{int(id[:8], 16) % SHARDS:02d}"


def due_of(item: Item) -> int:
    """The instant at which an item is due."""
    return time_of_key(item.key.sort[:TIME_KEY_LENGTH])


# --- effects ----------------------------------------------------------------------------------


def effect_id(policy: str, cause: str, key: str) -> str:
    """The id of an effect that a policy wished for because of an event."""
    return short_hash("effect", policy, cause, key)


def queue_partition(queue: str) -> str:
    """The partition of a queue; no shard has such a name."""
    return f"lane.{queue}"


def outbox_key(partition: str, due_at: int, order: str, id: str) -> Key:
    """Where an effect lies: by when it is due, and of what is due at one instant by its `PendingEffect.order`."""
    return Key(OUTBOX, partition, f"{time_key(due_at)}{order}.{id}")


def outbox_partition(queues: Container[str], queue: str, id: str) -> str:
    """The partition of an effect: of its queue if that is declared, else a shard."""
    return queue_partition(queue) if queue in queues else shard_of(id)


def due_effects(store: Store, queues: Iterable[str], start: str) -> Iterator[Item]:
    """The effects that wait, in whichever queue, from a sort key on by when they are due."""
    partitions = [*(f"{shard:02d}" for shard in range(SHARDS)), *map(queue_partition, queues)]
    pages = (query_pages(store, OUTBOX, partition, start, size=_PAGE_ITEMS) for partition in partitions)
    return heapq.merge(*pages, key=lambda item: item.key.sort)


def unrecorded_key(workspace: str, id: str) -> Key:
    """The key that marks a dead letter whose outcome could not be recorded as an event."""
    return Key(PARKED, f"{workspace}/{id}", "-")


def postponed_key(workspace: str, id: str) -> Key:
    """The key that leads to an effect that was postponed before its first attempt."""
    return Key(POSTPONED, f"{workspace}/{id}", "-")


def postponed_writes(pending: PendingEffect, until: int) -> list[Put | Delete]:
    """The writes by which an effect is due at another instant, without an attempt."""
    key = outbox_key(pending.item.key.partition, until, pending.order, pending.id)
    later = pack_effect(pending._replace(since=until, claim=None, postponed=pending.first_due))
    writes: list[Put | Delete] = [Delete(pending.item.key, pending.item.version), Put(key, later, 0)]
    # What has been tried has events that say that it waits.
    noted = [] if pending.attempts else [Put(postponed_key(pending.workspace, pending.id), key.sort.encode())]
    return [*writes, *noted]


def pending_effect(item: Item) -> PendingEffect:
    """The effect of an item of the outbox."""
    workspace, thread, policy, cause, attempts, (kind, key, due_at, data, *queue), *rest = unpack(item.value)
    effect = Effect(kind=kind, key=key, due_at=due_at, data=data, queue=queue[0] if queue else "")
    since, began, *more = rest or (due_of(item), 0)
    claim, postponed = more or (None, 0)
    claimed = None if claim is None else Claim(*claim)
    return PendingEffect(item, workspace, thread, policy, cause, attempts, effect, since, began, claimed, postponed)


def pack_new(workspace: str, thread: str, policy: str, cause: str, effect: Effect, queue: str) -> bytes:
    """The item of a new effect; ``queue`` is given where the effect waits in another partition than its queue's."""
    return pack((workspace, thread, policy, cause, 0, _effect_fields(effect, queue)))


def pack_effect(pending: PendingEffect) -> bytes:
    """The item of an effect that is claimed or due again, or of a dead letter."""
    effect = _effect_fields(pending.effect, pending.effect.queue)
    fields = (
        pending.workspace,
        pending.thread,
        pending.policy,
        pending.cause,
        pending.attempts,
        effect,
        pending.since,
        pending.began,
    )
    return pack(
        (*fields, pending.claim, pending.postponed) if pending.claim is not None or pending.postponed else fields
    )


def _effect_fields(effect: Effect, queue: str) -> tuple[Any, ...]:
    fields = (effect.kind, effect.key, effect.due_at, effect.data)
    return (*fields, queue) if queue else fields


def moved(pending: PendingEffect, queues: Container[str], queue: str) -> PendingEffect:
    """An effect that was in a queue, in the partition of that as it is declared now."""
    partition = outbox_partition(queues, queue, pending.id)
    # An undeclared queue is stored with the effect.
    effect = replace(pending.effect, queue="" if partition == queue_partition(queue) else queue)
    item = pending.item._replace(key=Key(pending.item.key.table, partition, pending.item.key.sort))
    return pending._replace(effect=effect, item=item)


# --- timers -----------------------------------------------------------------------------------


class PendingTimer(NamedTuple):
    """A timer that has not fired yet."""

    item: Item
    workspace: str
    thread: str
    policy: str
    key: str
    data: dict[str, Any]
    history: int | None = None
    """When the history was recorded that it was set for; None: it was set for what is live."""
    why: str = ""
    """The reason of its cause, with which it goes on; empty: it waits for an instant."""

    @property
    def fired(self) -> dict[str, Any]:
        """The properties of the event that says that it is due."""
        return fired_properties(self.policy, self.key, self.data, self.history, self.why)


def timer_key(thread: str, policy: str, key: str, due_at: int) -> Key:
    """Where the timer of a thread lies: by due time within its shard."""
    id = short_hash("timer", thread, policy, key)
    return Key(TIMER, shard_of(id), f"{time_key(due_at)}.{id}")


def timer_put(workspace: str, thread: str, policy: str, timer: Timer, history: int | None = None, why: str = "") -> Put:
    """The write that sets a timer of a thread; see `PendingTimer` for ``history`` and ``why``."""
    key = timer_key(thread, policy, timer.key, timer.due_at)
    fields: tuple[Any, ...] = (workspace, thread, policy, timer.key, timer.data)
    if why:
        fields = (*fields, history, why)
    elif history is not None:
        fields = (*fields, history)
    return Put(key, pack(fields))


def fired_properties(policy: str, key: str, data: dict[str, Any], history: int | None, why: str = "") -> dict[str, Any]:
    """The properties of the event that says that a timer is due; see `PendingTimer` for ``history`` and ``why``."""
    fired: dict[str, Any] = {"policy": policy, "key": key, "data": data}
    if history is not None:
        fired[FIRED_HISTORY] = history
    if why:
        fired[FIRED_WHY] = why
    return fired


def pending_timer(item: Item) -> PendingTimer:
    """The timer of an item."""
    return PendingTimer(item, *unpack(item.value))


def pending_timers(
    store: Store, stop: int, after: str = "", expected: int = SHARDS * PAGE_ITEMS_MAX
) -> Iterator[PendingTimer]:
    """All timers that are due before ``stop``, by due time; ``after`` is the sort key to continue behind.

    ``expected``: how many will be asked for, so that a shard is not read a thousand timers far for a few.
    """
    size = min(expected // SHARDS + 10, PAGE_ITEMS_MAX)
    shards = (query_pages(store, TIMER, f"{shard:02d}", after, time_key(stop), size) for shard in range(SHARDS))
    return map(pending_timer, heapq.merge(*shards, key=lambda item: item.key.sort))
