"""SQL over the lake and what is newer in the store: as of the end of the log, whenever the lake was last synced."""

# Names and texts in statements are quoted; the rest is our own.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports import duck
from threadline.exports.curated.folded import folds_of
from threadline.exports.curated.people import DUCKDB, folded_tables
from threadline.exports.curated.queries import TABLES, VIEWS
from threadline.exports.curated.schema import CONTENT_TOTALS, STREAK_SNAPSHOTS, VECTORS
from threadline.exports.curated.zone import Zone
from threadline.exports.duck import name, text
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.lake import EVENTS, IDENTITIES, Lake, Manifest
from threadline.exports.lake.schema import IDENTITIES as IDENTITY_COLUMNS
from threadline.exports.lake.schema import RAW, pa
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event_type import EventType
from threadline.kernel.object_storage import path_name

TYPED = "typed"
"""The schema with a view for each type of event, where declared properties are columns."""
UNCOUNTED = "uncounted_events"
"""The view of what nobody but Threadline may say, and somebody else has said."""
_COLUMNS = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
BATCH_ROWS = 10_000
QUERIES = {**TABLES, **VIEWS}
MOVED = (
    "WITH several AS MATERIALIZED (SELECT thread FROM identities GROUP BY thread HAVING count(*) > 1) "
    "SELECT thread, arg_max(person, position) AS person FROM identities WHERE thread IN (FROM several) GROUP BY thread"
)
"""Whose those threads are that have changed hands. The person of all other events is right as it is."""
ALONE = " UNION ALL SELECT thread, person FROM identities ANTI JOIN several USING (thread) WHERE person <> thread"
"""In a lake of version 1, a single row may be what a compaction has left."""


@contextmanager
def opened(engine: Engine, lake: Lake | None, workspace: str, newer_max: int | None = None) -> Iterator[Reading]:
    """The tables and views of a workspace in DuckDB. What the lake does not have yet is read from the store's log, at
    most ``newer_max`` entries of it.

    Raises `InvalidValue` for a query that DuckDB does not take, `Unavailable` for files that cannot be read.
    """
    with TemporaryDirectory(prefix="threadline-sql-") as scratch:
        manifest = Manifest() if lake is None else lake.manifest()
        newer = Lake(FolderStorage(Path(scratch), is_durable=False))
        newer.commit(replace(manifest, files=[], obsolete=[]), "")
        sync(engine, newer, limit=newer_max)
        reading = read(engine, None if lake is None else (lake, manifest), newer, workspace)
        try:
            with duck.explained():
                yield reading
        finally:
            reading.close()


def read(engine: Engine, lake: tuple[Lake, Manifest] | None, newer: Lake, workspace: str) -> Reading:
    """The tables and views of a workspace, of a lake and of another that has what follows. Close them afterwards."""
    scratch = newer.storage.url("")
    connection = duck.connected(scratch, None if lake is None else lake[0].storage)
    try:
        with duck.explained():
            return Reading(engine, connection, workspace, lake, newer)
    except BaseException:
        connection.close()
        raise


class Reading:
    """A workspace's tables in DuckDB."""

    def __init__(
        self, engine: Engine, connection: Any, workspace: str, lake: tuple[Lake, Manifest] | None, newer: Lake
    ) -> None:
        self.engine = engine
        self.connection = connection
        self.workspace = workspace
        self.lake = lake
        self.newer = newer
        self.folds = folds_of(engine.catalogue)
        self._queries = {**QUERIES, **{view.name: view.query for view in engine.catalogue.sql_views}}
        self.zone = None if lake is None else Zone(*lake, workspace, self.folds.fingerprint)
        tail = newer.manifest()
        # After the log was read: what of it was erased meanwhile is among these.
        erased = frozenset[str]() if lake is None else erased_since(engine.store, lake[1].erased)[0]
        self.tail = tail
        """How far what was read of the log goes, and of its erasures."""
        self._folders: list[str] = []
        self._typed: dict[str, list[str]] = {}
        self._folded = False
        self.is_locked = False
        """Whether it was asked, from when on it writes no file."""
        connection.execute("CREATE SCHEMA parts")
        connection.register("rows", pa.table({"id": pa.array(sorted(erased), pa.string())}))
        connection.execute("CREATE TABLE parts.erased AS FROM rows")
        connection.unregister("rows")
        self._add_events([*([] if lake is None else [lake]), (newer, tail)])

    def _add_events(self, lakes: Sequence[tuple[Lake, Manifest]]) -> None:
        """Make the views `events` and `identities` of what several lakes have together."""
        urls: dict[str, list[str]] = {EVENTS: [], IDENTITIES: []}
        for lake, manifest in lakes:
            self._folders += [lake.storage.url(f"{zone}/{path_name(self.workspace)}/") for zone in ("raw", "curated")]
            for file in manifest.files:
                if file.workspace == self.workspace and file.table in urls:
                    urls[file.table].append(lake.storage.url(file.name))
                    if file.table == EVENTS:
                        self._typed.setdefault(file.event, []).append(lake.storage.url(file.name))
        self._view("identities", f"SELECT * FROM {self._files(urls[IDENTITIES], IDENTITY_COLUMNS)}")
        alone = ALONE if any(manifest.schema_version < 2 for _, manifest in lakes) else ""
        self.connection.execute(f"CREATE TABLE parts.moved AS {MOVED}{alone}")
        files = self._files(urls[EVENTS], RAW)
        self._view("events", self._events(files, RAW.names))
        self._view(UNCOUNTED, self._events(files, RAW.names, counting=False))

    def close(self) -> None:
        """Close the connection. The files stay."""
        self.connection.close()

    def run(self, query: str) -> Any:
        """The result of a query, as a reader of Arrow's record batches."""
        kinds = [statement.type for statement in self.connection.extract_statements(query)]
        if kinds != [duck.duckdb().StatementType.SELECT]:
            # Others may write files, also into the lake, which has to be open for reading.
            raise InvalidValue("this is not one query: write a single SELECT, FROM, SHOW or DESCRIBE")
        self._add_tables(query.lower())
        if not self.is_locked:
            duck.lock(self.connection, self._folders)
            self.is_locked = True
        return self.connection.execute(query).to_arrow_reader(BATCH_ROWS)

    def has_to_fold(self, query: str) -> bool:
        """Whether a query reads tables for which people have to be looked at, and none has read them yet."""
        return not self._folded and self._reads_folded(query.lower())

    def fold(self) -> int:
        """Make the tables that are folded person by person, if there are none; how many people were folded."""
        if self._folded:
            return 0
        self._folded = True
        return folded_tables(self.connection, self.engine, self.zone, self.workspace, self.folds)

    def add_all(self) -> None:
        """Make every table and view, and fold the people of whom something is new."""
        self._add_tables(" ".join(self._queries))

    def _add_tables(self, query: str) -> None:
        """Make what a query reads: each view is planned when it is made, and all of them take longer than most queries.
        A query that asks what there is gets all of them, and those that are folded without rows."""
        asks = query.lstrip().startswith(("show", "desc"))
        lists = asks or any(part in query for part in ("information_schema", "duckdb_"))
        needed = set(self._queries) if lists else self._read_by(query)
        if not asks and self._reads_folded(query):
            self.fold()
        elif lists and not self._folded:
            for table in self.folds.tables:
                columns = ", ".join(f"NULL::{DUCKDB[column.kind]} AS {name(column.name)}" for column in table.columns)
                self._view(table.name, f"SELECT {columns} WHERE false")
        for view, its_query in self._queries.items():
            if view in needed:
                self._view(view, its_query)
        if TYPED in query:
            self._add_typed()

    def _reads_folded(self, query: str) -> bool:
        return any(table.name in self._read_by(query) for table in self.folds.tables)

    def _add_typed(self) -> None:
        self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {TYPED}")
        types = self.engine.catalogue.event_types
        # Most types have no files. What stands in for those is looked at once: for each it took half of a query's time.
        nothing = self._events(self._files((), RAW))
        of_nothing = self._columns(nothing)
        for event in sorted({*self._typed, *types.declared}):
            events, there = nothing, of_nothing
            if urls := self._typed.get(event, ()):
                files = ", ".join(map(text, urls))
                events = self._events(f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)")
                there = self._columns(events)
            self._view(f"{TYPED}.{name(event)}", self._declared_columns(types.of(event), events, there))

    def _columns(self, events: str) -> set[str]:
        return {row[0] for row in self.connection.execute(f"DESCRIBE {events}").fetchall()}

    def _declared_columns(self, type: EventType, events: str, there: Collection[str]) -> str:
        """Events of a type that Threadline declares, with a column for each property that the files have none of."""
        made = [
            f"TRY_CAST(json_extract_string(properties, {text(f'/{property}')}) AS {kind}) AS {name(f'p_{property}')}"
            for property, schema in type.property_schemas.items()
            if (kind := _COLUMNS.get(str(schema.get("type")))) and f"p_{property}" not in there
        ]
        return f"SELECT *, {', '.join(made)} FROM ({events})" if made else events

    def _view(self, view: str, query: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE VIEW {view} AS {query}")

    def _files(self, urls: Sequence[str], columns: Any) -> str:
        if urls:
            return f"read_parquet([{', '.join(map(text, urls))}], hive_partitioning = false)"
        empty = f"parts.without_{len(columns)}_columns"
        self.connection.register("rows", columns.empty_table())
        self.connection.execute(f"CREATE TABLE IF NOT EXISTS {empty} AS FROM rows")
        self.connection.unregister("rows")
        return empty

    def _events(self, files: str, columns: Sequence[str] = (), *, counting: bool = True) -> str:
        """Events with whose they are now and their day; without ``columns`` all that the files have. ``counting``:
        those whose source may say them, as in every view of a person; else the others."""
        moved = self._count("moved")
        person = "coalesce(m.person, e.person)" if moved else "e.person"
        join = "LEFT JOIN parts.moved m ON m.thread = e.thread" if moved else ""
        shown = ", ".join(f"{person} AS person" if column == "person" else f"e.{name(column)}" for column in columns)
        shown = shown or f"e.* REPLACE ({person} AS person)"
        left = "ANTI JOIN parts.erased x ON x.id = e.id" if self._count("erased") else ""
        counts = self.engine.catalogue.event_types.counts_sql
        chosen = counts if counting else f"NOT ({counts})"
        return f"SELECT {shown}, utc_day(e.occurred_at) AS day FROM {files} e {join} {left} WHERE {chosen}"

    def _count(self, part: str) -> int:
        count: int = self.connection.execute(f"SELECT count(*) FROM parts.{part}").fetchone()[0]
        return count

    def _read_by(self, query: str) -> set[str]:
        """The tables and views whose names are in a query, and those that these are made of."""
        names = [*self._queries, STREAK_SNAPSHOTS.name, CONTENT_TOTALS.name, VECTORS]
        needed, reading = set[str](), query
        while more := {table for table in names if table not in needed and table in reading}:
            needed |= more
            reading = " ".join(self._queries.get(table, "") for table in more)
        return needed
