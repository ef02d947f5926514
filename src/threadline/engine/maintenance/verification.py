"""Everything that can be said of a store's wholeness: its own parts, every event, everybody, every decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from threadline.engine.damage import CheckedLog, Damage
from threadline.engine.delivery.access import EngineAccess
from threadline.engine.maintenance.rebuild import Parts, Refolded, refold_everybody
from threadline.engine.maintenance.thread_tally import ThreadTally, differences
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.store import Store

Progress = Callable[[str, int], None]
"""What is being verified, and how many of it were since the last call."""


class Verified(NamedTuple):
    """What was found wrong with a store."""

    faults: Sequence[str]
    """Of the store itself, and why its log or its people could not be read to their end."""
    events: int
    damaged: Sequence[Damage]
    people: Refolded
    breaches: Sequence[str]
    """Decisions that do not follow from what they have read."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        people = self.people
        return not (
            self.faults or self.damaged or people.unreadable or people.differing or people.rows_amiss or self.breaches
        )


def verify(
    engine: EngineAccess,
    *,
    jobs: int = 1,
    opener: Callable[[], Parts] | None = None,
    progress: Progress = lambda what, count: None,
) -> Verified:
    """Look at all of a store, and go on where something is damaged. Writes nothing."""
    store = engine.store
    faults = list(store.integrity())
    log, feed = CheckedLog(store), ThreadTally()
    try:
        for page in log.pages():
            feed.count(entry for _, entry in page)
            progress("events verified", len(page))
    except StoreDamaged as error:
        faults.append(f"the log cannot be read beyond its event {log.entries}: {error}")
    people, breaches = Refolded(0, 0, (), 0, ()), list[str]()
    try:
        people = refold_everybody(
            store,
            engine.catalogue,
            write=False,
            jobs=jobs,
            opener=opener,
            progress=lambda count: progress("people verified", count),
        )
        if people.tally is not None and not people.unreadable and not log.damaged:
            faults += differences(store, feed, people.tally, engine.clock())
        breaches = [fault for inspection in engine.catalogue.inspections for fault in inspection.inspect(engine)]
    except StoreDamaged as error:
        faults.append(f"people and decisions cannot be read through: {error}")
    return Verified(faults, log.entries, log.damaged, people, breaches)


def unchecked_items(store: Store) -> str:
    """What can go unnoticed in the items of this store, for it has no checksums of its own; empty if it has."""
    with suppress(StoreDamaged):
        if store.stats().get("data_checksums") == 0:
            return (
                "the server keeps no checksums of its pages: damage to anything but events goes unnoticed where it "
                "still can be read; `pg_checksums --enable` adds them while the server is stopped"
            )
    return ""
