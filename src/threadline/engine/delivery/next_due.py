"""When the next timer, effect or job is due: for whoever can be woken at an instant, and need not look every second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from threadline.engine.delivery.circuit import circuits
from threadline.engine.jobs.jobs import DUE, JOB_DUE
from threadline.engine.scheduled import OUTBOX, SHARDS, TIMER, due_of, queue_partition
from threadline.kernel.sender import Queue
from threadline.kernel.store import Store
from threadline.kernel.time import time_key


def next_due(store: Store, queues: Mapping[str, Queue], after: int | None = None) -> int | None:
    """The first instant at which anything is due, or the first after another instant; None: nothing waits for one.

    A query of one item for each shard and queue.
    """
    start = "" if after is None else time_key(after + 1)
    first = (store.query(table, partition, start, limit=1) for table, partition in _partitions(store, queues))
    return min((due_of(item) for items in first for item in items), default=None)


def _partitions(store: Store, queues: Mapping[str, Queue]) -> Iterator[tuple[str, str]]:
    for shard in range(SHARDS):
        yield TIMER, f"{shard:02d}"
        yield OUTBOX, f"{shard:02d}"
    for name in sorted(queues.keys() | circuits(store).keys()):
        yield OUTBOX, queue_partition(name)
    yield JOB_DUE, DUE
