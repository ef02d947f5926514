"""Repair: good copies of damaged events are taken from a backup or another store and put in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from threadline.engine.damage import CheckedLog, Damage, DamagedEvents
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import check_entry, unpack_event
from threadline.engine.folding.person import person_key, thread_key
from threadline.engine.maintenance.rebuild import compared, write_refolded
from threadline.kernel.errors import EventDamaged
from threadline.kernel.event import event_id
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import LogEntry, Span, Store, event_pages


class Repair(NamedTuple):
    """What a repair has found and done, or with a preview would do."""

    entries: int
    mended: list[tuple[Damage, LogEntry]]
    """Damaged events, each with the copy that has taken its place."""
    without_copy: list[Damage]
    changed: list[Damage]
    """Events that were not as they were read any more when they were to be replaced."""
    refolded: int
    """People whose states were folded from damaged events, and are folded anew."""


def repair(store: Store, source: Store, catalogue: Catalogue, known: DamagedEvents, *, preview: bool = False) -> Repair:
    """Look for damaged events in the whole log, and replace each by its copy in ``source``, if that is whole.

    A copy has the id of the event: its own, or the one that follows from its content where the id itself is damaged; or
    it stands at the same place of the same thread. With ``preview`` nothing is written.
    """
    log = CheckedLog(store)
    for _ in log.pages():
        pass
    done = Repair(log.entries, [], [], [], 0)
    for damage in log.damaged:
        copy = next(_copies(store, source, damage.feed_entry.entry), None)
        if copy is None:
            done.without_copy.append(damage)
        elif preview or store.mend(damage.feed_entry, copy):
            done.mended.append((damage, copy))
        else:
            done.changed.append(damage)
    if preview:
        return done
    known.forget({id for damage, copy in done.mended for id in (damage.feed_entry.entry.id, copy.id)})
    return done._replace(refolded=_refolded(store, catalogue, [copy.thread for _, copy in done.mended]))


def _copies(store: Store, source: Store, damaged: LogEntry) -> Iterator[LogEntry]:
    """Whole entries of the source that can be the copy of a damaged one, the surest first."""
    ids = [damaged.id, *_own_id(damaged)]
    by_id = source.find(ids)
    candidates = [by_id[id] for id in ids if id in by_id]
    candidates += [entry for entry in _in_thread(source, damaged) if entry.sequence == damaged.sequence]
    taken = store.seen([candidate.id for candidate in candidates if candidate.id != damaged.id])
    for candidate in candidates:
        # An event that is elsewhere in this log is not the one that is missing here.
        is_elsewhere = candidate.id in taken and store.find([candidate.id]).get(candidate.id, damaged) != damaged
        if candidate.body and not check_entry(candidate) and not is_elsewhere:
            yield candidate


def _own_id(damaged: LogEntry) -> list[str]:
    try:
        event = unpack_event(damaged).event
    except EventDamaged:
        return []
    return [event_id(event.workspace, event.source, event.key)]


def _in_thread(source: Store, damaged: LogEntry) -> Iterator[LogEntry]:
    yield from event_pages(source, damaged.thread, Span(limit=PAGE_ITEMS_MAX))


def _refolded(store: Store, catalogue: Catalogue, threads: Sequence[str]) -> int:
    """Fold the people of these threads anew who were folded again while an event of theirs was damaged."""
    owners = store.get([thread_key(thread) for thread in dict.fromkeys(threads)])
    people = {person_key(item.value.decode()) for item in owners if item is not None}
    items = [item for item in store.get(list(people)) if item is not None]
    wrong = [
        (comparison.item, comparison.fresh)
        for comparison in compared(store, catalogue, items)
        if comparison.fresh is not None
    ]
    return len(wrong) - len(write_refolded(store, wrong)) if wrong else 0
