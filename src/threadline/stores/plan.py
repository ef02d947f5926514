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
    outcomes, entries, items = plan
    for batch in batches:
        refusal = _refusal(batch, now, ids, lost=any(map(outcomes.__getitem__, batch.builds_on)))
        outcomes.append(refusal)
        if refusal is not None:
            continue
        entries += batch.events
        ids.update([entry.id for entry in batch.events])
        for write in batch.writes:
            if isinstance(write, Put):
                key, value, _, begins = write
                version = now.get(key, 0)
                now[key] = version = version + 1 if version else begins
                items[key] = (version, value)
            elif isinstance(write, Delete):
                now.pop(write.key, None)
                items[write.key] = None
    return plan


def _refusal(batch: Batch, versions: Mapping[Key, int], taken: AbstractSet[str], *, lost: bool) -> Refusal | None:
    ids = [entry.id for entry in batch.events]
    if not taken.isdisjoint(ids) or len(set(ids)) < len(ids):
        return Refusal("event_exists", next(id for place, id in enumerate(ids) if id in taken or id in ids[:place]))
    if lost:
        return BUILT_ON_REFUSED
    for write in batch.writes:
        expected = write.expected
        if expected is not None and expected != versions.get(write.key, 0):
            detail = f"{'/'.join(write.key)}: expected {expected}, found {versions.get(write.key, 0)}"
            return Refusal("version", detail)
    return None
