"""The lake's rows in Iceberg tables: what is new is added, what was erased is taken out for good."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from threadline.exports.iceberg.catalog import NAMESPACE_PREFIX, WORKSPACE, namespace_of
from threadline.exports.iceberg.cleaning import clean
from threadline.exports.iceberg.table import LogTable, Reached, open_table
from threadline.exports.lake.files import read_table
from threadline.exports.lake.lake import EVENTS, IDENTITIES, File, Lake, Manifest
from threadline.exports.lake.schema import IDENTITIES as IDENTITY_COLUMNS
from threadline.exports.lake.schema import RAW, pa
from threadline.kernel.errors import Conflict, NotFound

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

COLUMNS = {EVENTS: RAW, IDENTITIES: IDENTITY_COLUMNS}
"""By table, its columns when it is created; later ones are added."""
ATTEMPTS_MAX = 8
"""Readings of the manifest, where other processes keep changing lake or table."""
ErasedSince = Callable[[str], tuple[Collection[str], str]]
"""Mark -> the ids of the events that were erased since, and a new mark."""


class Synced(NamedTuple):
    """What became of one table."""

    workspace: str
    table: str
    added: int
    erased: int
    files_deleted: int


class Standing(NamedTuple):
    """How far one table has come."""

    workspace: str
    table: str
    position: int
    waiting: int
    """Rows of the lake that it does not have."""
    rows: int
    files: int
    metadata: str
    """Where its newest metadata is, for readers without the catalogue."""


class Tables:
    """The Iceberg tables of a lake: one namespace for each workspace."""

    def __init__(self, catalog: Catalog, lake: Lake) -> None:
        self._catalog = catalog
        self._lake = lake

    def sync(self, erased_since: ErasedSince) -> list[Synced]:
        """Bring every table up to the lake's manifest. It may be killed at any instant and repeated."""
        return [self._synced(workspace, table, erased_since) for workspace, table in self._all()]

    def compact(self, keep_seconds: float) -> list[Synced]:
        """Join small files, and delete those that have been replaced for longer than this."""
        synced = []
        for workspace, table in self._all():
            log = self.open(workspace, table)
            log.compact()
            synced.append(Synced(workspace, table, 0, 0, clean(log, keep_seconds)))
            log.hint()
        return synced

    def standing(self) -> list[Standing]:
        """How far each table has come."""
        standings = []
        for workspace, table in self._all():
            log = self.open(workspace, table)
            position = log.reached().position
            waiting = sum(
                len(rows) for rows in self._rows(_beyond(self._lake.files(workspace, table), position), position)
            )
            standings.append(Standing(workspace, table, position, waiting, *log.size(), log.table.metadata_location))
        return standings

    def open(self, workspace: str, table: str) -> LogTable:
        """The table of a workspace, created if it is not there."""
        namespace = namespace_of(workspace)
        self._catalog.create_namespace_if_not_exists(namespace, {WORKSPACE: workspace})
        return open_table(self._catalog, namespace, table, COLUMNS[table])

    def _all(self) -> list[tuple[str, str]]:
        """Every table: also of workspaces that the lake has no files of any more, since all of it was erased."""
        workspaces = {file.workspace for file in self._lake.manifest().files}
        for namespace, *_ in self._catalog.list_namespaces():
            if namespace.startswith(NAMESPACE_PREFIX):
                workspaces.add(self._catalog.load_namespace_properties(namespace).get(WORKSPACE, ""))
        return [(workspace, table) for workspace in sorted(workspaces - {""}) for table in COLUMNS]

    def _synced(self, workspace: str, table: str, erased_since: ErasedSince) -> Synced:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            log, manifest = self.open(workspace, table), self._lake.manifest()
            reached = log.reached()
            if reached.position > manifest.position or reached.store not in ("", manifest.store):
                raise Conflict(
                    f"the table {table} of workspace {workspace!r} has position {reached.position} of a log that the "
                    f"lake is no copy of, or an older one",
                    hint="Drop the table and sync again: it is made anew from the lake.",
                )
            try:
                return self._brought_up(log, reached, manifest, (workspace, table), erased_since(reached.erasures)[0])
            except (Conflict, NotFound):
                # Another process was faster, or has replaced the file of the lake that was to be read.
                if attempt == ATTEMPTS_MAX:
                    raise
        raise AssertionError

    def _brought_up(
        self, log: LogTable, reached: Reached, manifest: Manifest, of: tuple[str, str], ids: Collection[str]
    ) -> Synced:
        workspace, table = of
        # The mark is that of the manifest: its files may still have an event that was erased since, which has to be
        # looked for again.
        heeded = Reached(manifest.position, manifest.erased, manifest.store)
        if manifest.leaving and table == IDENTITIES:
            # Somebody is being erased, whose identities leave the lake last.
            heeded = heeded._replace(erasures=reached.erasures)
        files = [file for file in manifest.files if (file.workspace, file.table) == (workspace, table)]
        added = erased = 0
        if ids and table == IDENTITIES:
            added = log.replace(self._rows(files), heeded)
        elif new := _beyond(files, reached.position):
            before = heeded._replace(erasures=reached.erasures) if ids else heeded
            added = log.append(self._rows(new, reached.position), before)
        if ids and table == EVENTS:
            erased = log.erase(ids, heeded)
        gone = clean(log) if ids else 0
        log.hint()
        return Synced(workspace, table, added, erased, gone)

    def _rows(self, files: Sequence[File], after: int = 0) -> Iterator[Any]:
        """The rows of these files beyond a position, file by file."""
        for file in files:
            rows = read_table(self._lake, file)
            yield rows if file.first > after else rows.filter(pa.compute.greater(rows["position"], after))


def _beyond(files: Sequence[File], position: int) -> list[File]:
    return [file for file in files if file.last > position]
