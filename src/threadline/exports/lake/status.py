"""How far a lake has come, and how far it is behind."""

from __future__ import annotations

from typing import NamedTuple

from threadline.engine.erasure.erased_ids import erased_pages
from threadline.engine.folding.packing import checked_event
from threadline.exports.lake.lake import EVENTS, Lake
from threadline.exports.lake.reading import Parts, check_log
from threadline.kernel.store import is_erased
from threadline.kernel.time import SECOND

_COUNTED_MAX = 100_000
"""Entries that are counted one by one where the store has no number of its own."""


class Status(NamedTuple):
    """What `threadline lake status` shows."""

    position: int
    """Entries of the log that the lake has."""
    waiting: int
    """Entries that it has not; beyond 100,000 it may be more on a store that cannot count them."""
    behind_seconds: float
    """Age of the oldest event of them; 0 without one."""
    erasures_waiting: int
    """Erased events that may be in files still."""
    events: int
    files: int
    bytes: int
    obsolete: int
    """Files that are to be removed."""
    recorded_at: int
    """When the newest event in the files was recorded, microseconds; 0: there is none."""


def status(engine: Parts, lake: Lake, now: int) -> Status:
    """Compare a lake with the log. Raises `Conflict` for the lake of another store."""
    manifest = lake.manifest()
    check_log(engine.store, lake, manifest)
    total = engine.store.stats().get("log_entries")
    cursor, waiting, oldest = manifest.cursor, 0, 0
    while waiting < _COUNTED_MAX and (page := engine.store.feed(cursor)):
        waiting += len(page)
        cursor = page[-1].cursor
        if not oldest:
            oldest = next(
                (checked_event(feed_entry.entry).recorded_at for feed_entry in page if not is_erased(feed_entry.entry)),
                0,
            )
        if oldest and total is not None:
            waiting = max(0, total - manifest.position)
            break
    files = [file for file in manifest.files if file.table == EVENTS]
    return Status(
        manifest.position,
        waiting,
        max(0, now - oldest) / SECOND if oldest else 0.0,
        sum(len(page.ids) for page in erased_pages(engine.store, manifest.erased)[0]),
        sum(file.rows for file in files),
        len(manifest.files),
        sum(file.bytes for file in manifest.files),
        len(manifest.obsolete),
        manifest.recorded_at,
    )
