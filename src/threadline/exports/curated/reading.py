"""SQL over the lake and what is newer in the store: as of the end of the log, whenever the lake was last synced."""

# Names and texts in statements are quoted; the rest is our own.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from threadline.engine.engine import Engine
from threadline.exports.curated import duck
from threadline.exports.curated.duck import name, text
from threadline.exports.curated.folded import folds_of
from threadline.exports.curated.people import folded_tables
from threadline.exports.curated.queries import TABLES, VIEWS
from threadline.exports.lake.lake import EVENTS, IDENTITIES, Lake, Manifest, path_name
from threadline.exports.lake.schema import IDENTITIES as IDENTITY_COLUMNS
from threadline.exports.lake.schema import RAW
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import InvalidValue

TYPED = "typed"
"""The schema with a view for each type of event, where declared properties are columns."""
NEED_FOLDS = ("streak_snapshots", "streak_distribution", "weekly_streaks", "content_totals", "content_effectiveness",
                "feature_vectors")  # fmt: skip


@contextmanager
def opened(engine: Engine, lake: Lake | None, workspace: str) -> Iterator[Reading]:
    """The tables and views of a workspace in DuckDB. What the lake does not have yet is read from the store's log."""
    with TemporaryDirectory(prefix="threadline-sql-") as scratch:
        manifest = Manifest() if lake is None else lake.manifest()
        newer = Lake(FolderStorage(Path(scratch)))
        newer.commit(replace(manifest, files=[], obsolete=[]), "")
        sync(engine, newer)
        connection = duck.connected(scratch, None if lake is None else lake.storage)
        try:
            reading = Reading(engine, connection, workspace)
            reading.add_events([*([] if lake is None else [(lake, manifest)]), (newer, newer.manifest())])
            reading.add_tables(lake)
            yield reading
        finally:
            connection.close()


class Reading:
    """A workspace's tables in DuckDB."""

    def __init__(self, engine: Engine, connection: Any, workspace: str) -> None:
        self.engine = engine
        self.connection = connection
        self.workspace = workspace
        self._lake: Lake | None = None
        self._folders: list[str] = []
        self._typed: dict[str, list[str]] = {}
        self._folded = False

    def add_events(self, lakes: Sequence[tuple[Lake, Manifest]]) -> None:
        """Make the views `events` and `identities` of what several lakes have together."""
        urls: dict[str, list[str]] = {EVENTS: [], IDENTITIES: []}
        for lake, manifest in lakes:
            self._folders.append(lake.storage.url(f"raw/{path_name(self.workspace)}/"))
            for file in manifest.files:
                if file.workspace == self.workspace:
                    urls[file.table].append(lake.storage.url(file.name))
                    if file.table == EVENTS:
                        self._typed.setdefault(file.event, []).append(lake.storage.url(file.name))
        self._view("identities", f"SELECT * FROM {self._files(urls[IDENTITIES], IDENTITY_COLUMNS)}")
        # A thread that was always its own person's needs no look-up, and there are usually few others.
        self.connection.execute(
            "CREATE TABLE moved AS SELECT thread, arg_max(person, position) AS person FROM identities "
            "GROUP BY thread HAVING arg_max(person, position) <> thread OR count(DISTINCT person) > 1"
        )
        self._view("events", self._events(self._files(urls[EVENTS], RAW)))

    def add_tables(self, lake: Lake | None) -> None:
        """Make the tables that are queries, and the views on them. Those that are folded are made when they are
        asked for."""
        self._lake = lake
        for table, query in TABLES.items():
            if table not in NEED_FOLDS:
                self._view(table, query)

    def run(self, query: str) -> Any:
        """The result of a query, to be fetched. Raises `InvalidValue` for one that DuckDB does not take."""
        database = duck.duckdb()
        try:
            written = query.lower()
            if any(each in written for each in NEED_FOLDS):
                self.add_folded()
            if TYPED in written:
                self._add_typed()
            duck.lock(self.connection, self._folders)
            return self.connection.execute(query)
        except database.Error as error:
            raise InvalidValue(f"DuckDB: {error}") from None

    def add_folded(self) -> None:
        """Make the tables that are folded person by person: those people are folded of whom something is new."""
        if self._folded:
            return
        self._folded = True
        folded_tables(self.connection, self.engine, self._lake, self.workspace, folds_of(self.engine.catalogue))
        self._view("content_effectiveness", TABLES["content_effectiveness"])
        for view, query in VIEWS.items():
            self._view(view, query)

    def _add_typed(self) -> None:
        self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {TYPED}")
        for event, urls in self._typed.items():
            files = f"read_parquet([{', '.join(map(text, urls))}], union_by_name = true, hive_partitioning = false)"
            self._view(f"{TYPED}.{name(event)}", self._events(files, "COLUMNS('^p_'), "))

    def _view(self, view: str, query: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE VIEW {view} AS {query}")

    def _files(self, urls: Sequence[str], columns: Any) -> str:
        if urls:
            return f"read_parquet([{', '.join(map(text, urls))}], hive_partitioning = false)"
        empty = f"no_{len(columns)}"
        self.connection.register(f"{empty}_rows", columns.empty_table())
        self.connection.execute(f"CREATE TABLE {empty} AS SELECT * FROM {empty}_rows")
        return empty

    def _events(self, files: str, typed: str = "") -> str:
        """Events with whose they are now, their day, and ``typed`` columns."""
        moved = self.connection.execute("SELECT count(*) FROM moved").fetchone()[0]
        person = "coalesce(m.person, e.person) AS person" if moved else "e.person"
        join = "LEFT JOIN moved m ON m.thread = e.thread" if moved else ""
        named = [person if column == "person" else f"e.{column}" for column in RAW.names]
        return f"SELECT {', '.join(named)}, {typed}utc_day(e.occurred_at) AS day FROM {files} e {join}"
