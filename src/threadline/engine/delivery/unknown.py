"""Effects that were claimed and of which nobody knows whether they happened: where they wait to be resolved.

The state of one lies under its workspace and id; a row under its queue, by time, is for counting and for what is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.folding.packing import pack, unpack
from threadline.engine.scheduled import outbox_key, pack_effect, pending_effect
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import PendingEffect, UnknownEffect
from threadline.kernel.store import Batch, Delete, Item, Key, Put, Store, beyond
from threadline.kernel.time import CLOCK_SKEW_MAX, time_key

UNKNOWN = "unknown"


def unknown_puts(pending: PendingEffect, queue: str, why: str, at: int) -> tuple[Put, ...]:
    """The writes of an effect that has become unknown."""
    value = pack((pack_effect(pending), pending.item.key.partition, queue, why, at))
    row = Put(_row(queue, at, pending.id), pending.workspace.encode())
    return Put(Key(UNKNOWN, pending.workspace, pending.id), value, 0), row


def unknown_deletes(unknown: UnknownEffect) -> tuple[Delete, ...]:
    """The writes that take it away."""
    return Delete(unknown.item.key, unknown.item.version), Delete(_row(unknown.queue, unknown.at, unknown.pending.id))


def unknown_effect(store: Store, workspace: str, id: str) -> UnknownEffect | None:
    """The unknown effect of an id; None if there is none."""
    item = store.get([Key(UNKNOWN, workspace, id)])[0]
    return None if item is None else _read(item)


def page(store: Store, workspace: str, after: str, limit: int) -> list[UnknownEffect]:
    """A page of those of a workspace, by id."""
    return [_read(item) for item in store.query(UNKNOWN, workspace, start=beyond(after), limit=limit)]


def over(store: Store, queue: str, until: int, limit: int) -> list[UnknownEffect]:
    """Those of a queue that became unknown until an instant, the oldest first."""
    return _of_rows(store, store.query(UNKNOWN, _of_queue(queue), stop=time_key(until + 1), limit=limit))


def put_off(store: Store, queue: str, now: int, limit: int) -> list[UnknownEffect]:
    """Those of a queue that became unknown at an instant to come: by a clock that was ahead."""
    start = time_key(now + CLOCK_SKEW_MAX)
    return _of_rows(store, store.query(UNKNOWN, _of_queue(queue), start=start, limit=limit))


def unknown_since(store: Store, unknown: UnknownEffect, at: int) -> None:
    """Note that an effect is unknown since another instant, unless somebody was faster."""
    state, row = unknown_puts(unknown.pending, unknown.queue, unknown.why, at)
    before = _row(unknown.queue, unknown.at, unknown.pending.id)
    store.commit([Batch(writes=[state._replace(expected=unknown.item.version), row, Delete(before)])])


def _of_rows(store: Store, rows: Sequence[Item]) -> list[UnknownEffect]:
    items = store.get([Key(UNKNOWN, row.value.decode(), row.key.sort.partition(".")[2]) for row in rows])
    return [_read(item) for item in items if item is not None]


def count(store: Store, queue: str) -> int:
    """How many of a queue are unknown, of all workspaces, to a page."""
    return len(store.query(UNKNOWN, _of_queue(queue), limit=PAGE_ITEMS_MAX))


def _of_queue(queue: str) -> str:
    return f"queue/{queue}"  # no workspace has a slash in its name


def _row(queue: str, at: int, id: str) -> Key:
    return Key(UNKNOWN, _of_queue(queue), f"{time_key(at)}.{id}")


def _read(item: Item) -> UnknownEffect:
    waits, partition, queue, why, at = unpack(item.value)
    key = outbox_key(partition, at, "", item.key.sort)
    return UnknownEffect(item, pending_effect(Item(key, 0, waits)), queue, why, at)
