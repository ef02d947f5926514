"""The folded tables in DuckDB: what the curated zone has of people of whom nothing has changed, the others folded."""

# Names and texts in statements are quoted; the rest is our own.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from threadline.engine.engine import Engine
from threadline.engine.folding.person import own
from threadline.engine.folding.refold import person_entries, person_events, read_ahead
from threadline.exports.curated.folded import Folds, Row, rows_of
from threadline.exports.curated.schema import Kind, Table
from threadline.exports.curated.zone import PEOPLE, Zone
from threadline.exports.duck import name, text
from threadline.exports.lake.schema import pa

_PAGE = 500
_ROWS_MAX = 50_000
"""Rows that are gathered before they go to DuckDB."""
_ARROW: dict[Kind, Any] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "flag": pa.bool_(),
    "instant": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "json": pa.string(),
    "texts": pa.list_(pa.string()),
}
DUCKDB: dict[Kind, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "flag": "BOOLEAN",
    "instant": "TIMESTAMPTZ",
    "day": "DATE",
    "json": "VARCHAR",
    "texts": "VARCHAR[]",
}
_OF_EVENTS = "SELECT person, count(*) AS events, sum(position)::BIGINT AS positions, bit_xor(hash(position)) AS mixed"
"""A person by the set of their events. A late event, an erasure, a merge and a split all show in it."""


def folded_tables(connection: Any, engine: Engine, zone: Zone | None, workspace: str, folds: Folds) -> int:
    """Make the folded tables in a connection that has the view `events`; how many people had to be folded."""
    connection.execute(f"CREATE TABLE parts.{PEOPLE} AS {_OF_EVENTS} FROM events GROUP BY person")
    current = zone if zone is not None and zone.is_current() else None
    tables = (PEOPLE, *(table.name for table in folds.tables))
    files = {table: [] if current is None else current.urls(table) for table in tables}
    before = _read(files[PEOPLE]) if files[PEOPLE] else f"(FROM parts.{PEOPLE} WHERE false)"
    connection.execute(f"CREATE TABLE parts.unchanged AS SELECT person FROM parts.{PEOPLE} NATURAL JOIN {before}")
    for table in folds.tables:
        columns = ", ".join(name(column.name) for column in table.columns)
        connection.register("rows", pa.table([[]] * len(table.columns), schema=arrow_schema(table)))
        connection.execute(f"CREATE TABLE parts.new_{table.name} AS FROM rows")
        unchanged = (
            f"SELECT {columns} FROM {_read(files[table.name])} SEMI JOIN parts.unchanged USING (person) UNION ALL "
        )
        view = f"{unchanged if files[table.name] else ''}SELECT {columns} FROM parts.new_{table.name}"
        connection.execute(f"CREATE OR REPLACE VIEW {table.name} AS {view}")
    changed = connection.execute(
        f"SELECT person FROM parts.{PEOPLE} ANTI JOIN parts.unchanged USING (person)"
    ).fetchall()
    for pages in _gathered(engine, workspace, folds, [person for (person,) in changed]):
        for table, rows in zip(folds.tables, pages, strict=True):
            connection.register("rows", arrow_table(table, rows))
            connection.execute(f"INSERT INTO parts.new_{table.name} FROM rows")
    connection.unregister("rows")
    return len(changed)


def arrow_schema(table: Table) -> Any:
    """The columns of a table in Arrow."""
    return pa.schema([pa.field(column.name, _ARROW[column.kind]) for column in table.columns])


def arrow_table(table: Table, rows: Sequence[Row]) -> Any:
    """Rows in Arrow."""
    columns = zip(*rows, strict=True) if rows else [()] * len(table.columns)
    schema = arrow_schema(table)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _read(urls: Iterable[str]) -> str:
    return f"read_parquet([{', '.join(map(text, urls))}], hive_partitioning = false)"


def _gathered(engine: Engine, workspace: str, folds: Folds, ids: Sequence[str]) -> Iterator[list[list[Row]]]:
    """The rows of these people, as many at a time as memory is to have, by table."""
    pages: list[list[Row]] = [[] for _ in folds.tables]
    for start in range(0, len(ids), _PAGE):
        people = engine.reader.people_of(workspace, ids[start : start + _PAGE])
        # Who was merged since the events were read is somebody else's by now.
        owned = [own(person) for id, person in people.items() if person.id == id]
        for person, ahead in read_ahead(engine.store, owned):
            entries = person_entries(engine.store, person, ahead)
            rows = rows_of(folds, person.id, list(person_events(engine.store, person, entries)))
            for page, table in zip(pages, folds.tables, strict=True):
                page += rows[table.name]
            if sum(map(len, pages)) >= _ROWS_MAX:
                yield pages
                pages = [[] for _ in folds.tables]
    yield pages
