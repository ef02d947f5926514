"""The lake follows the log: range by range, each in one commit of the manifest with the position that it reaches."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from msgspec.structs import replace

from threadline.engine.erasure.erased_ids import erased_pages
from threadline.engine.interpreter import gc_deferred
from threadline.engine.reading.lookup import owners
from threadline.exports.lake.cleaning import clean
from threadline.exports.lake.columns import with_columns, with_declared
from threadline.exports.lake.erasing import without_erased
from threadline.exports.lake.files import write_part
from threadline.exports.lake.identities import Identities
from threadline.exports.lake.lake import EVENTS, IDENTITIES, Column, File, Lake
from threadline.exports.lake.part import parts_of
from threadline.exports.lake.reading import Parts, Range, check_log, read_range
from threadline.exports.lake.schema import pa
from threadline.kernel.errors import Conflict

RANGE_EVENTS = 50_000
"""Entries of the log that become one set of files and one commit."""
_ATTEMPTS_MAX = 8


class Synced(NamedTuple):
    """What a sync has done."""

    events: int = 0
    """Events that are in the files now and were not before."""
    files: int = 0
    bytes: int = 0
    position: int = 0
    """Entries of the log that the lake has."""
    erased: int = 0
    """Events that were taken out of files."""


def sync(
    engine: Parts,
    lake: Lake,
    *,
    limit: int | None = None,
    range_events: int = RANGE_EVENTS,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Synced:
    """Bring a lake up to the present end of the log, or by at most ``limit`` entries of it.

    ``on_progress`` is called after each range, with the position and the entries of the log; 0: not known.

    It may be killed at any instant: files that no manifest names are no part of the lake. Raises `Conflict` for the
    lake of another store, and if another process syncs the same lake.
    """
    clean(lake)
    done = Synced(position=lake.manifest().position)
    identities = Identities(engine.store, engine.catalogue.rules)
    total = engine.store.stats().get("log_entries", 0)
    while limit is None or limit > 0:
        with gc_deferred():
            step, size = _step(engine, lake, identities, range_events if limit is None else min(limit, range_events))
        done = Synced(
            done.events + step.events,
            done.files + step.files,
            done.bytes + step.bytes,
            step.position,
            done.erased + step.erased,
        )
        if not size:
            break
        on_progress(done.position, max(total, done.position) if total else 0)
        limit = None if limit is None else limit - size
    return done


def _step(engine: Parts, lake: Lake, identities: Identities, most: int) -> tuple[Synced, int]:
    """The next range, with the erasures that are done since the last: what was done, and the entries of the range."""
    for _ in range(_ATTEMPTS_MAX):
        manifest, tag = lake.tagged()
        check_log(engine.store, lake, manifest)
        read = read_range(engine.store, manifest, most)
        # After the range was read: what of it was erased meanwhile is among these.
        pages, mark = erased_pages(engine.store, manifest.erased)
        removed = without_erased(lake, engine.store, read.manifest, pages)
        erased: frozenset[str] = frozenset().union(*(page.ids for page in pages))
        if pages:
            identities.forget()  # rows that are gone now, of people who may have come back
        read = read._replace(table=_without(read.table, erased), manifest=removed.manifest)
        columns = with_declared(manifest.columns, engine.catalogue.requirements)
        files = _written(engine, lake, identities, read, columns)
        after = replace(read.manifest, erased=mark, columns=columns, files=[*read.manifest.files, *files])
        if after == manifest:
            return Synced(position=manifest.position), 0
        try:
            lake.commit(after, tag)
        except Conflict:
            identities.forget()
            if lake.manifest().position != manifest.position:
                raise
            continue  # it was compaction, or a table that is derived
        if removed.manifest.obsolete != manifest.obsolete:
            clean(lake)
        size = sum(file.bytes for file in files)
        return Synced(read.table.num_rows, len(files), size, after.position, removed.events), read.size
    raise Conflict(f"other processes keep changing the lake {lake.storage.url()}")


def _written(engine: Parts, lake: Lake, identities: Identities, read: Range, columns: list[Column]) -> list[File]:
    """The files of a range."""
    first, last = read.first, read.manifest.position
    people = owners(engine.store, pa.compute.unique(read.table["thread"]).to_pylist())
    plain, required = list(parts_of(read.table, people)), engine.catalogue.requirements
    typed = [part._replace(table=with_columns(part.table, columns, required)) for part in plain]
    files = [write_part(lake, part, EVENTS, first, last) for part in typed]
    return files + [write_part(lake, part, IDENTITIES, first, last) for part in identities.parts(read, plain, people)]


def _without(table: Any, ids: Collection[str]) -> Any:
    """The events of a table that have none of these ids."""
    return table.filter(pa.compute.invert(pa.compute.is_in(table["id"], pa.array(ids, pa.string())))) if ids else table
