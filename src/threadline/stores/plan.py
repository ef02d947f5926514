"""The result of the batches of one call: outcomes, new log entries, the last state of each item. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from threadline.kernel.store import Batch, Check, Delete, Key, LogEntry, Put, Refusal

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
    outcomes, entries, items = plan
    now = dict(versions)
    ids = [entry.id for batch in batches for entry in batch.events]
    # Nearly always every id is new, and then none has to be looked for batch by batch.
    known = set(taken) if taken or len(set(ids)) < len(ids) else None
    for batch in batches:
        events, writes, builds_on = batch
        refusal = None if known is None else _taken(events, known)
        if refusal is None:
            lost = builds_on and any(map(outcomes.__getitem__, builds_on))
            refusal = BUILT_ON_REFUSED if lost else _outdated(writes, now)
        outcomes.append(refusal)
        if refusal is not None:
            continue
        entries += events
        if known is not None:
            known.update(entry.id for entry in events)
        for write in writes:
            if isinstance(write, Put):
                key, value, _, begins = write
                version = now.get(key, 0)
                now[key] = version = version + 1 if version else begins
                items[key] = (version, value)
            elif isinstance(write, Delete):
                now.pop(write.key, None)
                items[write.key] = None
    return plan


def _taken(events: Sequence[LogEntry], known: AbstractSet[str]) -> Refusal | None:
    ids: set[str] = set()
    for entry in events:
        if entry.id in known or entry.id in ids:
            return Refusal("event_exists", entry.id)
        ids.add(entry.id)
    return None


def _outdated(writes: Sequence[Put | Delete | Check], versions: Mapping[Key, int]) -> Refusal | None:
    for write in writes:
        expected = write.expected
        if expected is not None and expected != (current := versions.get(write.key, 0)):
            return Refusal("version", f"{'/'.join(write.key)}: expected {expected}, found {current}")
    return None
