"""What is erased in the store leaves the files: they are written again without it, and the old ones removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from threadline.engine.erasure.erased_ids import ErasedPage
from threadline.engine.reading.lookup import owners
from threadline.exports.lake.files import read_table, write_part
from threadline.exports.lake.lake import EVENTS, IDENTITIES, File, Lake, Manifest, Obsolete
from threadline.exports.lake.part import Part
from threadline.exports.lake.schema import pa
from threadline.kernel.erasure import ERASURE_OPEN
from threadline.kernel.personal import Copy
from threadline.kernel.store import Store
from threadline.kernel.time import format_time


class Removed(NamedTuple):
    """A manifest without erased events, and how many rows they were."""

    manifest: Manifest
    events: int


def without_erased(lake: Lake, store: Store, manifest: Manifest, pages: Sequence[ErasedPage]) -> Removed:
    """Write the files again that have rows of erased events. Files that are derived from events go as a whole.

    Nothing is removed before the manifest is committed; then everything obsolete is, see `clean`.
    """
    if not pages and not manifest.leaving:
        return Removed(manifest, 0)
    # Read first: an erasure that ends after this is looked at again in the next sync.
    under_way = bool(store.scan(ERASURE_OPEN, limit=1))
    threads = set(manifest.leaving)
    events = [file for file in manifest.files if file.table == EVENTS and _concerned(file, pages)]
    ids = pa.array(sorted(frozenset().union(*(page.ids for page in pages))), pa.string())
    files: dict[str, File | None] = {}
    people: set[str] = set()
    count = 0
    for file in events if len(ids) else ():
        gone = pa.compute.is_in(read_table(lake, file, ["id"])["id"], ids)
        if number := pa.compute.sum(gone).as_py() or 0:
            table = read_table(lake, file)
            threads.update(table.filter(gone)["thread"].to_pylist())
            people.update(table.filter(gone)["person"].to_pylist())
            files[file.name] = _rewritten(lake, file, table.filter(pa.compute.invert(gone)))
            count += number
    identities = [file for file in manifest.files if file.table == IDENTITIES]
    if count:
        threads |= _threads_of(lake, identities, threads, people)
    split_off = sorted(threads - owners(store, threads).keys())
    files |= _identities(lake, identities, split_off)
    if pages:
        files |= {file.name: None for file in manifest.files if file.table not in (EVENTS, IDENTITIES)}
    leaving = sorted(threads - set(split_off)) if under_way else []
    left = [now for file in manifest.files if (now := files.get(file.name, file)) is not None]
    obsolete = [*manifest.obsolete, *(Obsolete(name, 0.0) for name in files)]
    if count:  # what compaction has replaced has the same rows
        obsolete = [Obsolete(item.name, 0.0) for item in obsolete]
    gaps = manifest.gaps or bool(count)
    return Removed(replace(manifest, files=left, obsolete=obsolete, leaving=leaving, gaps=gaps), count)


def _concerned(file: File, pages: Iterable[ErasedPage]) -> bool:
    """Whether a file may have events that are erased, by the day of their recording."""
    return any(
        page.recorded is None or format_time(page.recorded[0])[:10] <= file.dt <= format_time(page.recorded[1])[:10]
        for page in pages
    )


def _threads_of(lake: Lake, files: Iterable[File], threads: Collection[str], people: set[str]) -> set[str]:
    """All threads of the people who have these threads: some have no event, and no row that leads to them."""
    rows = [row for file in files for row in read_table(lake, file, ["thread", "person"]).to_pylist()]
    people = people | {row["person"] for row in rows if row["thread"] in threads}
    return {row["thread"] for row in rows if row["person"] in people}


def _identities(lake: Lake, files: Iterable[File], threads: Collection[str]) -> dict[str, File | None]:
    """The files of identities without these threads, by the name of the file that each replaces."""
    changed: dict[str, File | None] = {}
    for file in files if threads else ():
        table = read_table(lake, file)
        gone = pa.compute.is_in(table["thread"], pa.array(threads, pa.string()))
        if pa.compute.any(gone).as_py():
            changed[file.name] = _rewritten(lake, file, table.filter(pa.compute.invert(gone)))
    return changed


def _rewritten(lake: Lake, file: File, table: Any) -> File | None:
    if not table.num_rows:
        return None
    return write_part(lake, Part(file.workspace, file.dt, file.event, table), file.table, file.first, file.last)


COPY = Copy("the lake", without_erased)
