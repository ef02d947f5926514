"""The lake follows the log: range by range, each in one commit of the manifest with the position that it reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import check_entry
from threadline.engine.folding.person import thread_key
from threadline.exports.lake.lake import EVENTS, IDENTITIES, File, Lake, Manifest, path_name
from threadline.exports.lake.part import Entry, Part, parquet, parts_of
from threadline.exports.lake.schema import IDENTITIES as IDENTITY_COLUMNS
from threadline.exports.lake.schema import pa, raw_body
from threadline.kernel.errors import Conflict, EventDamaged
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import FeedEntry, Store, is_erased

RANGE_EVENTS = 50_000
"""Entries of the log that become one set of files and one commit."""
RANGE_BYTES = 64 * 1_024 * 1_024
"""Bytes of their bodies."""


class Parts(Protocol):
    """The parts of the engine that the lake is made of."""

    @property
    def store(self) -> Store:
        """The store whose log it follows."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """What is declared of events."""
        ...


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


class _Range(NamedTuple):
    """Entries of the log, right behind those that the lake has."""

    found: Sequence[Entry]
    size: int
    """Entries, those that are erased as well."""
    manifest: Manifest
    """With the position behind them."""


def sync(engine: Parts, lake: Lake, *, limit: int | None = None) -> Synced:
    """Bring a lake up to the present end of the log, or by at most ``limit`` entries of it.

    It may be killed at any instant: files that no manifest names are no part of the lake. Raises `Conflict` for a
    lake of another store, and if another process syncs the same lake.
    """
    manifest, tag = lake.tagged()
    _check_log(engine.store, lake, manifest)
    done = Synced(position=manifest.position)
    while limit is None or limit > 0:
        size = RANGE_EVENTS if limit is None else min(limit, RANGE_EVENTS)
        read = _read(engine.store, manifest, size)
        if not read.size:
            break
        files = [*_events(engine, lake, manifest, read), *_identities(engine.store, lake, manifest, read)]
        manifest = replace(read.manifest, files=[*manifest.files, *files])
        tag = lake.commit(manifest, tag)
        done = Synced(
            done.events + len(read.found),
            done.files + len(files),
            done.bytes + sum(file.bytes for file in files),
            manifest.position,
            done.erased,
        )
        limit = None if limit is None else limit - read.size
    return done


def _check_log(store: Store, lake: Lake, manifest: Manifest) -> None:
    """Raise `Conflict` unless the log has, where the lake ends, the entry with which the lake ends."""
    if not manifest.position:
        return
    last = store.feed(manifest.last_cursor, 1)
    if not last or (last[0].cursor, last[0].entry.id) != (manifest.cursor, manifest.last_id):
        raise Conflict(
            f"the lake {lake.storage.url()} was made of another store than this, or of a newer copy of it",
            hint="begin a lake in an empty folder; of a store that was moved or restored the log is another",
        )


def _read(store: Store, manifest: Manifest, most: int) -> _Range:
    """The next entries behind what the lake has."""
    found: list[Entry] = []
    position, cursor, size, gaps = manifest.position, manifest.cursor, 0, manifest.gaps
    last: FeedEntry | None = None
    before = cursor
    while (count := position - manifest.position) < most and size < RANGE_BYTES:
        page = store.feed(cursor, min(PAGE_ITEMS_MAX, most - count))
        if not page:
            break
        for one in page:
            position += 1
            entry = one.entry
            if is_erased(entry):
                gaps = True
                continue
            if why := check_entry(entry):
                raise EventDamaged(entry.id, entry.thread, entry.sequence, why, one.cursor)
            found.append(Entry(position, entry, raw_body(entry, one.cursor)))
            size += len(entry.body)
        before = page[-2].cursor if len(page) > 1 else cursor
        last, cursor = page[-1], page[-1].cursor
        store_id = manifest.store or page[0].entry.id
        manifest = replace(manifest, store=store_id)
    if last is None:
        return _Range((), 0, manifest)
    recorded_at = max((one.body.recorded_at for one in found), default=0)
    reached = replace(
        manifest,
        position=position,
        cursor=cursor,
        last_cursor=before,
        last_id=last.entry.id,
        recorded_at=max(manifest.recorded_at, recorded_at),
        gaps=gaps,
    )
    return _Range(found, position - manifest.position, reached)


def _events(engine: Parts, lake: Lake, manifest: Manifest, read: _Range) -> list[File]:
    people = owners(engine.store, {one.entry.thread for one in read.found})
    first, last = manifest.position + 1, read.manifest.position
    return [write_part(lake, part, EVENTS, first, last) for part in parts_of(read.found, people)]


def _identities(store: Store, lake: Lake, manifest: Manifest, read: _Range) -> list[File]:
    """Whose the threads are that are new in this range, or were merged or parted in it."""
    threads: dict[str, str] = {}
    for _, entry, body in read.found:
        # Each thread begins with its first event, unless that was erased before it came here.
        if entry.sequence == 1 or read.manifest.gaps:
            threads[entry.thread] = body.event.workspace
        if entry.type in (MERGED, SPLIT):
            named: Mapping[str, Any] = msgspec.json.decode(body.event.properties)
            own = [named[name] for name in ("survivor", "merged", "person", "split") if name in named]
            threads |= dict.fromkeys([entry.thread, *named.get("threads", ()), *own], body.event.workspace)
    people = owners(store, threads)
    files = []
    for workspace in sorted(set(threads.values())):
        own = sorted(thread for thread, its in threads.items() if its == workspace)
        columns = [[workspace] * len(own), own, [people.get(each, each) for each in own]]
        position = [read.manifest.position] * len(own)
        table = pa.Table.from_arrays([*map(pa.array, columns), pa.array(position)], schema=IDENTITY_COLUMNS)
        first, last = manifest.position + 1, read.manifest.position
        files.append(write_part(lake, Part(workspace, "", "", table), IDENTITIES, first, last))
    return files


def owners(store: Store, threads: Iterable[str]) -> dict[str, str]:
    """Whose each of these threads is now. A thread of somebody who is being erased may be missing."""
    wanted = sorted(threads)
    found: dict[str, str] = {}
    for start in range(0, len(wanted), PAGE_ITEMS_MAX):
        page = wanted[start : start + PAGE_ITEMS_MAX]
        for thread, item in zip(page, store.get([thread_key(each) for each in page]), strict=True):
            if item is not None:
                found[thread] = item.value.decode()
    return found


def write_part(lake: Lake, part: Part, table: str, first: int, last: int) -> File:
    """Write a file. Its name says of which positions it is and, in the end, what is in it: what was written twice has
    one name, and nobody writes over a file that a manifest names."""
    content = parquet(part.table, first, last)
    digest = hashlib.sha256(content).hexdigest()
    below = f"dt={part.dt}/event={part.event}/" if table == EVENTS else ""
    name = f"raw/{path_name(part.workspace)}/{table}/{below}part-{first:020}-{last:020}-{digest[:8]}.parquet"
    lake.storage.write(name, content)
    return File(
        name=name, workspace=part.workspace, table=table, event=part.event, dt=part.dt, first=first, last=last,
        rows=part.table.num_rows, bytes=len(content), sha256=digest,
    )  # fmt: skip
