"""One Iceberg table of rows that have a position in the log: appended exactly once, erased, made compact.

A commit swaps the table's metadata atomically, and only if no other commit came in between. It names, in the snapshot's
summary, the position up to which the table has the rows of the log: a process that is killed before the swap has added
nothing, and one that loses the race for it goes on from the position of the other.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from threadline.kernel.errors import Conflict
from threadline.kernel.personal import Copy
from threadline.wire.arrow import arrow

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table, Transaction
    from pyiceberg.table.snapshots import Snapshot

pa = arrow("writing", "lake")

Rows = Any
"""An Arrow table."""
Columns = Any
"""The schema of one."""

LOG_POSITION = "threadline.log-position"
ERASURES = "threadline.erasures"
STORE = "threadline.store"
VERSION_HINT = "metadata/version-hint.text"
"""Below a table: the name of its newest metadata, for readers without a catalogue."""
FILE_BYTES = 32 << 20
"""Of a data file, compressed: what compaction aims at. One is read into memory at a time, at several times that."""
ROWS_AT_ONCE = 200_000
"""Rows that are gathered in memory before they are written as a file."""

_PROPERTIES = {
    # PyIceberg would repeat an append that lost its race on top of the other's commit: the same rows twice.
    "commit.retry.num-retries": "0",
    # Bounds of other columns would leave personal data in manifests, which outlive an erased row.
    "write.metadata.metrics.default": "none",
    **{
        f"write.metadata.metrics.column.{name}": "full"
        for name in ("position", "occurred_at", "received_at", "recorded_at")
    },
    "write.metadata.metrics.column.type": "truncate(64)",
    "commit.manifest-merge.enabled": "true",
}


class Reached(NamedTuple):
    """How far a table has come."""

    position: int = 0
    """It has every row of the log up to this position, and none beyond."""
    erasures: str = ""
    """The mark of the erasures that it is known to have heeded."""
    store: str = ""
    """Whose log it is; see `Manifest.store`."""


class LogTable:
    """A table of a catalogue."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def table(self) -> Table:
        """PyIceberg's own table, as of the newest commit that was read or made here."""
        return self._table

    def refresh(self) -> None:
        """Take notice of what others have committed."""
        self._table.refresh()

    def reached(self) -> Reached:
        """What the newest snapshot says that says anything; other programs make snapshots that name no position."""
        snapshot = self._table.current_snapshot()
        if snapshot is None:
            return Reached()
        while snapshot is not None:
            summary = _summary(snapshot)
            if LOG_POSITION in summary:
                return Reached(int(summary[LOG_POSITION]), summary.get(ERASURES, ""), summary.get(STORE, ""))
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._table.snapshot_by_id(parent)
        # What is beyond the last row and was no row then is none now: it was erased.
        return Reached(max((self._range(task)[1] for task in self._tasks()), default=0))

    def append(self, parts: Iterable[Rows], reached: Reached) -> int:
        """Add rows in one commit; how many. A column that is new is added to the table. Raises `Conflict` if another
        process has committed since `refresh`; then nothing was added."""
        with _committing(self._table) as transaction:
            written = self._written(transaction, parts)
            with transaction.update_snapshot(snapshot_properties=_named(reached)).merge_append() as snapshot:
                for file in written:
                    snapshot.append_data_file(file)
        return sum(file.record_count for file in written)

    def replace(self, parts: Iterable[Rows], reached: Reached) -> int:
        """The same, with these rows in the place of all that are there."""
        with _committing(self._table) as transaction:
            written = self._written(transaction, parts)
            with transaction.update_snapshot(snapshot_properties=_named(reached)).overwrite() as snapshot:
                for task in self._tasks():
                    snapshot.delete_data_file(task.file)
                for file in written:
                    snapshot.append_data_file(file)
        return sum(file.record_count for file in written)

    def _written(self, transaction: Transaction, parts: Iterable[Rows]) -> list[DataFile]:
        """Data files of these rows, after columns that are new have been added."""
        counter, commit = itertools.count(), uuid.uuid4()
        written: list[DataFile] = []
        for part in _gathered(parts):
            with transaction.update_schema() as schema:
                schema.union_by_name(part.schema)
            written += self._write(transaction, part, commit, counter)
        return written

    def erase(self, ids: Collection[str], reached: Reached) -> int:
        """Take the rows with these ids out of the newest snapshot in one commit; how many there were.

        Only files that have one are written again. Until `clean` their former bytes are still there.
        """
        wanted = pa.array(sorted(ids), pa.string())
        rows, counter, commit = 0, itertools.count(), uuid.uuid4()
        with (
            _committing(self._table) as transaction,
            transaction.update_snapshot(snapshot_properties=_named(reached)).overwrite() as snapshot,
        ):
            for task in self._tasks():
                column = self._read(task, ("id",))["id"]
                erased = pa.compute.is_in(column, value_set=wanted.cast(column.type))
                count = pa.compute.sum(erased).as_py() or 0
                if count:
                    rows += count
                    snapshot.delete_data_file(task.file)
                    left = self._read(task).filter(pa.compute.invert(erased))
                    for file in self._write(transaction, left, commit, counter):
                        snapshot.append_data_file(file)
        return rows

    def compact(self, file_bytes: int = FILE_BYTES) -> int:
        """Make few files of many small ones, in a commit for each new one; how many files are gone.

        Neighbours are joined, so that the range of positions and times that a file covers stays narrow.
        """
        gone = 0
        for tasks in _bins(sorted(self._tasks(), key=self._range), file_bytes):
            self._join(tasks)
            gone += len(tasks) - 1
        return gone

    def _join(self, tasks: Collection[FileScanTask]) -> None:
        rows = pa.concat_tables([self._read(task) for task in tasks], promote_options="permissive")
        order = [(name, "ascending") for name in ("thread", "occurred_at", "position") if name in rows.schema.names]
        with (
            _committing(self._table) as transaction,
            transaction.update_snapshot(snapshot_properties=_named(self.reached())).overwrite() as snapshot,
        ):
            for task in tasks:
                snapshot.delete_data_file(task.file)
            for file in self._write(transaction, rows.sort_by(order), uuid.uuid4(), itertools.count()):
                snapshot.append_data_file(file)

    def mark(self) -> None:
        """Commit nothing, so that whoever has begun a commit before this one fails with it."""
        with (
            _committing(self._table) as transaction,
            transaction.update_snapshot(snapshot_properties=_named(self.reached())).fast_append(),
        ):
            pass

    def _write(
        self, transaction: Transaction, rows: Rows, commit: uuid.UUID, counter: itertools.count[int]
    ) -> list[DataFile]:
        """Write data files that a snapshot can name; nobody reads them before one does."""
        # The one private name of PyIceberg that is used: it has no public way to write a file before its commit.
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        if not rows.num_rows:
            return []
        metadata = transaction.table_metadata
        return list(_dataframe_to_data_files(metadata, rows, self._table.io, write_uuid=commit, counter=counter))

    def hint(self) -> None:
        """Say in the table's folder which metadata is the newest."""
        name = self._table.metadata_location.rpartition("/")[2].removesuffix(".metadata.json")
        with self._table.io.new_output(f"{self._table.location()}/{VERSION_HINT}").create(overwrite=True) as file:
            file.write(name.encode())

    def size(self) -> tuple[int, int]:
        """Rows and data files."""
        files = [task.file for task in self._tasks()]
        return sum(file.record_count for file in files), len(files)

    def _range(self, task: FileScanTask) -> tuple[int, int]:
        """The first and the last position in a data file."""
        field = self._table.schema().find_field("position").field_id
        bounds = task.file.lower_bounds[field], task.file.upper_bounds[field]
        first, last = (int.from_bytes(bound, "little", signed=True) for bound in bounds)
        return first, last

    def _tasks(self) -> list[FileScanTask]:
        return list(self._table.scan().plan_files())

    def _read(self, task: FileScanTask, names: tuple[str, ...] = ()) -> Rows:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        schema = self._table.schema()
        projected = schema.select(*names) if names else schema
        return ArrowScan(self._table.metadata, self._table.io, projected, AlwaysTrue()).to_table([task])


def open_table(catalog: Catalog, namespace: str, name: str, schema: Columns) -> LogTable:
    """The table of a name in a namespace that is there, created with these columns if it is not."""
    table = catalog.create_table_if_not_exists(f"{namespace}.{name}", plain(schema), properties=_PROPERTIES)
    missing = {key: value for key, value in _PROPERTIES.items() if table.properties.get(key) != value}
    if missing:
        with table.transaction() as transaction:
            transaction.set_properties(missing)
    return LogTable(table)


def plain(schema: Columns) -> Columns:
    """A schema as Iceberg has it: no dictionaries, and every column may be null, since a later one will have to be."""
    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(type: Any) -> Any:
    return type.value_type if pa.types.is_dictionary(type) else type


@contextmanager
def _committing(table: Table) -> Iterator[Transaction]:
    """A transaction that commits if its block ends well. Raises `Conflict` for a race that was lost."""
    from pyiceberg.exceptions import CommitFailedException

    try:
        with table.transaction() as transaction:
            yield transaction
    except CommitFailedException as error:
        name = ".".join(table.name())
        raise Conflict(f"another process has changed the table {name} at the same time: {error}") from error


def _named(reached: Reached) -> dict[str, str]:
    return {LOG_POSITION: str(reached.position), ERASURES: reached.erasures, STORE: reached.store}


def _summary(snapshot: Snapshot) -> dict[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties


def _gathered(parts: Iterable[Rows]) -> Iterator[Rows]:
    """Small parts together, as many rows as become a file of a good size; none that is empty."""
    waiting: list[Rows] = []
    for part in parts:
        if waiting and sum(map(len, waiting)) + len(part) > ROWS_AT_ONCE:
            yield pa.concat_tables(waiting, promote_options="default")
            waiting = []
        if len(part):
            waiting.append(part.cast(plain(part.schema)))
    if waiting:
        yield pa.concat_tables(waiting, promote_options="default")


def _bins(tasks: Iterable[FileScanTask], file_bytes: int) -> Iterator[list[FileScanTask]]:
    """Neighbours that together make a file of about this size; a file that is large enough stays alone."""
    waiting: list[FileScanTask] = []
    size = 0
    for task in tasks:
        if size + task.file.file_size_in_bytes > file_bytes:
            if len(waiting) > 1:
                yield waiting
            waiting, size = [], 0
        waiting.append(task)
        size += task.file.file_size_in_bytes
    if len(waiting) > 1:
        yield waiting


COPY = Copy("Iceberg tables", LogTable.erase)
