"""The result of the batches of one call: outcomes, new log entries, the last state of each item. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from threadline.kernel.store import Batch, Delete, Key, LogEntry, Put, Refusal

BUILT_ON_REFUSED = Refusal("version", "it builds on a batch of this call that was refused")


class Plan(NamedTuple):
    """The writes and the outcome of each batch."""

    outcomes: list[Refusal | None]
    entries: list[LogEntry]
    """New rows of the log, in commit order."""
    items: dict[Key, tuple[int, bytes] | None]
    """Touched items after the last batch: (version, value), or None for absent."""


def decide(batches: Sequence[Batch], versions: Mapping[Key, int], taken: AbstractSet[str]) -> Plan:
    """Apply the batches in order, in memory, to the present state of the store.

    ``versions`` has the version of every item that is named and exists; ``taken`` those of the events' ids
    that the log is known to hold. An item written by several batches is written to the file once.
    """
    plan = Plan([], [], {})
    now = dict(versions)
    ids = set(taken)
    for batch in batches:
        refusal = _refusal(batch, now, ids, lost=any(plan.outcomes[number] for number in batch.builds_on))
        plan.outcomes.append(refusal)
        if refusal is not None:
            continue
        plan.entries.extend(batch.events)
        ids.update(entry.id for entry in batch.events)
        for write in batch.writes:
            if isinstance(write, Put):
                version = now.get(write.key, 0)
                now[write.key] = version = version + 1 if version else write.begins
                plan.items[write.key] = (version, write.value)
            elif isinstance(write, Delete):
                now.pop(write.key, None)
                plan.items[write.key] = None
    return plan


def _refusal(batch: Batch, versions: Mapping[Key, int], taken: AbstractSet[str], *, lost: bool) -> Refusal | None:
    ids: set[str] = set()
    for entry in batch.events:
        if entry.id in taken or entry.id in ids:
            return Refusal("event_exists", entry.id)
        ids.add(entry.id)
    if lost:
        return BUILT_ON_REFUSED
    for write in batch.writes:
        if write.expected is not None and write.expected != versions.get(write.key, 0):
            detail = f"{'/'.join(write.key)}: expected {write.expected}, found {versions.get(write.key, 0)}"
            return Refusal("version", detail)
    return None
