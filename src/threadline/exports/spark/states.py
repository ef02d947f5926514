"""The table `states` in the lake: a row for each person, replaced as a whole by every refold."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from threadline.exports.lake.erasing import without_erased
from threadline.exports.lake.files import read_table
from threadline.exports.lake.lake import EVENTS, IDENTITIES, File, Lake, Manifest, Obsolete
from threadline.exports.lake.schema import pa
from threadline.exports.spark.folding import PersonRow
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.object_storage import path_name
from threadline.kernel.personal import Copy

STATES = "states"
ROWS_MAX = 50_000
BYTES_MAX = 64 * 1_024 * 1_024
"""A file is closed at so many rows, or bytes of states."""


class Source(NamedTuple):
    """What a refold of a workspace reads, and where it writes."""

    workspace: str
    position: int
    """Entries of the log that are in the files."""
    events: tuple[str, ...]
    """Where other engines find the files of events."""
    identities: tuple[str, ...]
    rows: int
    """Events in the files. As many have to be folded."""
    run: str
    """Below the storage, the folder of the files to write."""


class Refolded(NamedTuple):
    """What a refold has done."""

    people: int
    events: int
    position: int
    """Entries of the log that are folded."""
    files: int
    bytes: int


Fold = Callable[[Source], tuple[Sequence[File], int]]
"""Folds a workspace and writes its rows: the files, and the number of events that were folded."""


def refold_lake(lake: Lake, fold: Fold, workspace: str | None = None) -> Refolded:
    """Make the states of every workspace anew, or of one, and publish them together in the end.

    Whatever ends it before, the states that were published stay as they are. Raises `Conflict` if events were erased
    meanwhile, or if a later refold was faster.
    """
    began = lake.manifest()
    names = sorted({file.workspace for file in began.files if file.table == EVENTS})
    run = secrets.token_hex(8)
    sources = [_source(lake, began, run, name) for name in names if workspace in (None, name)]
    done: list[tuple[Source, Sequence[File]]] = []
    try:
        for source in sources:
            files, events = fold(source)
            if events != source.rows:
                raise InvalidValue(
                    f"{events:,} events of workspace {source.workspace!r} were folded; its files have {source.rows:,}",
                    hint="`threadline lake verify` says which files are not as they were written",
                )
            done.append((source, files))
        _publish(lake, began, done)
    except BaseException:
        for source in sources:
            lake.storage.delete([file.name for file in lake.storage.list(f"{source.run}/")])
        raise
    files = [file for _, written in done for file in written]
    people, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    return Refolded(people, sum(source.rows for source in sources), began.position, len(files), size)


def _source(lake: Lake, manifest: Manifest, run: str, workspace: str) -> Source:
    def files(table: str) -> list[File]:
        return [file for file in manifest.files if (file.workspace, file.table) == (workspace, table)]

    return Source(
        workspace,
        manifest.position,
        tuple(lake.storage.url(file.name) for file in files(EVENTS)),
        tuple(lake.storage.url(file.name) for file in files(IDENTITIES)),
        sum(file.rows for file in files(EVENTS)),
        f"curated/{path_name(workspace)}/{STATES}/run-{manifest.position:020}-{run}",
    )


def write_states(lake: Lake, source: Source, definitions: str, rows: Iterable[PersonRow]) -> Iterator[File]:
    """Write rows into files of the run; each is given once it is there."""
    for number, page in enumerate(_pages(rows)):
        content = _parquet(page, definitions)
        name = f"{source.run}/part-{number:05}.parquet"
        lake.storage.write(name, content)
        digest = hashlib.sha256(content).hexdigest()
        yield states_file(source, name, len(page), len(content), digest)


def states_file(source: Source, name: str, rows: int, size: int, digest: str) -> File:
    """A file of states, as the manifest names it."""
    return File(
        name=name,
        workspace=source.workspace,
        table=STATES,
        first=1,
        last=source.position,
        rows=rows,
        bytes=size,
        sha256=digest,
    )


def _publish(lake: Lake, began: Manifest, done: Sequence[tuple[Source, Sequence[File]]]) -> None:
    workspaces = {source.workspace for source, _ in done}
    fresh = [file for _, files in done for file in files]

    def published(manifest: Manifest) -> Manifest:
        former = [file for file in manifest.files if file.table == STATES and file.workspace in workspaces]
        if (manifest.store, manifest.erased) != (began.store, began.erased):
            hint = "begin again"
            raise Conflict("events were erased while this refold was at work; its states may have them", hint=hint)
        if any(file.last > began.position for file in former):
            raise Conflict("a refold of more events has ended before this one; its states stay")
        names = {file.name for file in former}
        return replace(
            manifest,
            files=[*(file for file in manifest.files if file.name not in names), *fresh],
            obsolete=[*manifest.obsolete, *(Obsolete(file.name, time.time()) for file in former)],
        )

    lake.change(published)


def published_rows(lake: Lake, workspace: str) -> Iterator[tuple[PersonRow, str]]:
    """The published states of a workspace, each with the hash of the definitions that made it, file by file."""
    for file in lake.files(workspace, STATES):
        table = read_table(lake, file)
        table = table.set_column(3, "latest_at", table["latest_at"].cast(pa.int64()))
        for *values, definitions in zip(*(column.to_pylist() for column in table.columns), strict=True):
            yield PersonRow(*values), definitions


def _pages(rows: Iterable[PersonRow]) -> Iterator[list[PersonRow]]:
    page: list[PersonRow] = []
    size = 0
    for row in rows:
        page.append(row)
        size += len(row.states)
        if len(page) >= ROWS_MAX or size >= BYTES_MAX:
            yield page
            page, size = [], 0
    if page:
        yield page


def _parquet(rows: Sequence[PersonRow], definitions: str) -> bytes:
    types = (pa.string(), pa.string(), pa.int64(), pa.timestamp("us", "UTC"), pa.string(), pa.string())
    columns = [pa.array(values, type) for values, type in zip(zip(*rows, strict=True), types, strict=True)]
    columns.append(pa.array([definitions] * len(rows), pa.string()))
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_arrays(columns, [*PersonRow._fields, "definitions"]), sink, compression="zstd")
    return bytes(sink.getvalue())


COPY = Copy("states of a refold", without_erased)
