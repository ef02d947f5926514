"""What waits in each queue and for how long, as operators and their monitoring ask."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from threadline.engine.delivery import dead_letters, unknown
from threadline.engine.delivery.circuit import circuits
from threadline.engine.delivery.leases import LEASE, LEASE_SECONDS
from threadline.engine.folding.packing import unpack
from threadline.engine.jobs.jobs import DUE, JOB_DUE
from threadline.engine.scheduled import OUTBOX, SHARDS, TIMER, due_effects, due_of, pending_effect, queue_partition
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import Backlog, CircuitState, QueueState
from threadline.kernel.sender import Queue
from threadline.kernel.store import Item, Key, Store
from threadline.kernel.time import CLOCK_SKEW_MAX, SECOND, time_key

_SHARDS = [f"{shard:02d}" for shard in range(SHARDS)]


def queue_states(store: Store, queues: Mapping[str, Queue]) -> list[QueueState]:
    """The declared queues by name."""
    known = circuits(store)
    pages = {name: store.query(OUTBOX, queue_partition(name), limit=PAGE_ITEMS_MAX) for name in sorted(queues)}
    return [
        _state(store, queues[name], known.get(name, CircuitState()), items, unknown.count(store, name))
        for name, items in pages.items()
    ]


def backlog(store: Store, queues: Mapping[str, Queue], now: int) -> Backlog:
    """Everything that waits: in the declared queues, in none, timers and jobs."""
    items = list(islice(due_effects(store, (), ""), PAGE_ITEMS_MAX))
    others = _state(store, Queue(""), CircuitState(), items, unknown.count(store, ""))
    pages = (store.query(TIMER, shard, stop=time_key(now + 1), limit=PAGE_ITEMS_MAX) for shard in _SHARDS)
    timers = [due_of(item) for page in pages for item in page]
    jobs = store.query(JOB_DUE, DUE, stop=time_key(now + 1), limit=PAGE_ITEMS_MAX)
    return Backlog(
        [*queue_states(store, queues), others],
        min(timers, default=None),
        len(jobs),
        due_of(jobs[0]) if jobs else None,
        len(timers),
    )


def unbelieved_leases(store: Store, queues: Mapping[str, Queue], now: int) -> dict[str, int]:
    """The leases on timers and effects whose end no clock can have meant: name -> that end."""
    names = [f"{table}/{shard}" for table in (TIMER, OUTBOX) for shard in _SHARDS]
    names += [f"{OUTBOX}/{queue_partition(name)}" for name in sorted(queues)]
    items = store.get([Key(LEASE, name) for name in names])
    ends = {item.key.partition: unpack(item.value)[1] for item in items if item is not None}
    longest = int(LEASE_SECONDS * SECOND) + CLOCK_SKEW_MAX
    return {name: until for name, until in ends.items() if until > now + longest}


def _state(store: Store, queue: Queue, circuit: CircuitState, items: list[Item], unknown: int) -> QueueState:
    waiting = [pending_effect(item) for item in items]
    return QueueState(
        queue,
        circuit,
        len(items),
        due_of(items[0]) if items else None,
        unknown,
        retried=sum(pending.attempts > 0 for pending in waiting),
        parked=dead_letters.count(store, queue.name),
        since=min((pending.since for pending in waiting), default=None),
    )
