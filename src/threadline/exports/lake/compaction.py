"""Small files of one day and partition become one; those of identities become one with the last rows of each thread."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from threadline.engine.reading.lookup import owners
from threadline.exports.lake.cleaning import clean
from threadline.exports.lake.columns import with_columns
from threadline.exports.lake.files import read_table, write_part
from threadline.exports.lake.identities import identity_table
from threadline.exports.lake.lake import EVENTS, IDENTITIES, File, Lake, Manifest, Obsolete
from threadline.exports.lake.part import IN_ORDER, Part
from threadline.exports.lake.reading import Parts
from threadline.exports.lake.schema import IDENTITIES as IDENTITY_COLUMNS
from threadline.exports.lake.schema import RAW, pa

COMPACTED_BYTES = 16 * 1_024 * 1_024
"""Up to which files are put together. In memory they take some ten times as much."""


class Compacted(NamedTuple):
    """What a compaction has done."""

    before: int = 0
    """Files that were replaced."""
    after: int = 0


def compact(engine: Parts, lake: Lake, *, at_most: int = COMPACTED_BYTES) -> Compacted:
    """Put small files together, beside syncs and readers. It may be killed at any instant.

    What is replaced is removed an hour later, for those who have read the manifest before.
    """
    done = Compacted()
    for group in _groups(lake.manifest(), at_most):
        made = _merged(engine, lake, group)
        names = {file.name for file in group}

        def swapped(manifest: Manifest, names: set[str] = names, made: Sequence[File] = tuple(made)) -> Manifest:
            if not names <= {file.name for file in manifest.files}:
                return manifest  # an erasure has written some of them again; next time
            # In the place of the first, so that files stay in the order of the log.
            first = next(at for at, file in enumerate(manifest.files) if file.name in names)
            left = [file for file in manifest.files if file.name not in names]
            now = time.time()
            obsolete = [*manifest.obsolete, *(Obsolete(name, now) for name in sorted(names - {f.name for f in made}))]
            return replace(manifest, files=[*left[:first], *made, *left[first:]], obsolete=obsolete)

        after = lake.change(swapped)
        if all(file in after.files for file in made):
            done = Compacted(done.before + len(group), done.after + len(made))
    clean(lake)
    return done


def _groups(manifest: Manifest, at_most: int) -> Iterator[list[File]]:
    """Files of one place that are small together, at least two, neighbours in the order of the log."""
    places: dict[tuple[str, str, str, str], list[File]] = defaultdict(list)
    for file in manifest.files:
        if file.table in (EVENTS, IDENTITIES):
            places[(file.workspace, file.table, file.dt, file.event)].append(file)
    for files in places.values():
        group: list[File] = []
        size = 0
        for file in sorted(files, key=lambda file: (file.first, file.last)):
            if group and size + file.bytes > at_most:
                if len(group) > 1:
                    yield group
                group, size = [], 0
            group.append(file)
            size += file.bytes
        if len(group) > 1:
            yield group


def _merged(engine: Parts, lake: Lake, group: Sequence[File]) -> list[File]:
    first, last = group[0].first, max(file.last for file in group)
    tables = [read_table(lake, file) for file in group]
    about = group[0]
    if about.table == IDENTITIES:
        table = _last_rows(engine, tables)
    else:
        table = pa.concat_tables([table.select(RAW.names) for table in tables]).unify_dictionaries()
        table = table.take(pa.compute.sort_indices(table, list(IN_ORDER)))
        # As the definitions are now: columns that were declared since are there for older events as well.
        table = with_columns(table, lake.manifest().columns, engine.catalogue.requirements)
    if not table.num_rows:
        return []
    return [write_part(lake, Part(about.workspace, about.dt, about.event, table), about.table, first, last)]


def _last_rows(engine: Parts, tables: Sequence[Any]) -> Any:
    """The last row of each thread, and the one before it that names another person: where there is none, the person of
    the thread's events is right, and queries need not look for it."""
    last: dict[str, tuple[str, str, str, int]] = {}
    other: dict[str, tuple[str, str, str, int]] = {}
    rows = (
        row
        for table in tables
        for row in zip(*(table[name].to_pylist() for name in IDENTITY_COLUMNS.names), strict=True)
    )
    for row in sorted(rows, key=itemgetter(3)):
        thread = row[1]
        if thread in last and last[thread][2] != row[2]:
            other[thread] = last[thread]
        last[thread] = row
    # Of somebody who is erased nothing stays, whenever that was.
    owned = owners(engine.store, last)
    return identity_table(sorted(row for rows in (last, other) for row in rows.values() if row[1] in owned))
