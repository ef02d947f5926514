"""The curated tables as Parquet: all of them as of one position of the log, in one commit of the zone's manifest."""

# Names and texts in statements are quoted; the rest is our own.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from threadline.engine.engine import Engine
from threadline.exports.curated.folded import folds_of
from threadline.exports.curated.people import DUCKDB
from threadline.exports.curated.reading import Reading, opened
from threadline.exports.curated.schema import FIXED, Column, Table
from threadline.exports.curated.warehouse import Dialect, Files, Target, dbt_sources, statements
from threadline.exports.curated.zone import PEOPLE, Zone
from threadline.exports.duck import name, text
from threadline.exports.lake.lake import Lake
from threadline.kernel.errors import Conflict, NotFound

FOLDED_MAX = 1_000
"""People from whom on what was folded of them for a query is put into the copy of the log."""
FILE_BYTES = 128 * 1_024 * 1_024
"""About so much makes a file."""


class Curated(NamedTuple):
    """A table that was written."""

    table: str
    rows: int
    bytes: int


def tables_of(engine: Engine) -> tuple[Table, ...]:
    """Every curated table under the definitions in force."""
    return (*FIXED, folds_of(engine.catalogue).vectors)


def curate(engine: Engine, lake: Lake, workspace: str) -> list[Curated]:
    """Write the curated tables of a workspace, as of the end of the log. Killed at any instant it has changed nothing,
    and what is the same as before is not another file."""
    with opened(engine, lake, workspace) as reading:
        return write(reading)


def write(reading: Reading) -> list[Curated]:
    """Write the curated tables of a reading that was asked nothing yet. Raises `Conflict` for an erasure since then."""
    reading.add_all()
    done, zone = [], reading.zone
    assert zone is not None
    with TemporaryDirectory(prefix="threadline-curated-") as scratch:
        written = {}
        for table, query in _queries(tables_of(reading.engine)):
            rows, files = _parquet(reading.connection, query, Path(scratch, table))
            written[table] = zone.add(table, files, rows, reading.tail.position)
            done.append(Curated(table, rows, sum(file.bytes for file in written[table])))
    zone.publish(written)
    return [item for item in done if item.table != PEOPLE]


def fold_and_keep(reading: Reading) -> bool:
    """Fold the people of whom something is new; whether it was for many. What they gave is in the files then, for which
    the tables are to be opened anew: else each query to a store that is written to would fold everybody."""
    if reading.fold() < FOLDED_MAX:
        return False
    with suppress(Conflict):  # an erasure came between: the next query writes them
        write(reading)
    return True


def warehouse_sql(engine: Engine, lake: Lake, workspace: str, dialect: Dialect, target: Target) -> list[str]:
    """What loads the curated tables of a workspace into a warehouse, as they were last written."""
    zone = Zone(lake, lake.manifest(), workspace, "")
    commands = []
    for table in tables_of(engine):
        if files := zone.files(table.name):
            folder = files[0].name.rpartition("/")[0]
            at = Files(folder, [file.name for file in files], zone.copy_manifest(table.name))
            commands += statements(dialect, table, at, target)
    if not commands:
        raise NotFound(f"{lake.storage.url()} has no curated tables yet", hint="run `threadline lake curate`")
    return commands


def dbt(engine: Engine, target: Target) -> str:
    """The sources file for dbt."""
    return dbt_sources(tables_of(engine), target)


def _queries(tables: tuple[Table, ...]) -> Iterator[tuple[str, str]]:
    for table in tables:
        order = ", ".join(name(column) for column in dict.fromkeys((table.sort, *table.key)))
        yield table.name, f"SELECT {', '.join(map(_cast, table.columns))} FROM {table.name} ORDER BY {order}"
    yield PEOPLE, f"FROM parts.{PEOPLE} ORDER BY person"


def _cast(column: Column) -> str:
    return f"CAST({name(column.name)} AS {DUCKDB[column.kind]}) AS {name(column.name)}"


def _parquet(connection: Any, query: str, folder: Path) -> tuple[int, list[Path]]:
    folder.mkdir()
    connection.execute("SET preserve_insertion_order = true")
    options = f"FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES {FILE_BYTES}"
    rows = connection.execute(f"COPY ({query}) TO {text(str(folder))} ({options})").fetchone()[0]
    return rows, sorted(folder.iterdir(), key=lambda path: (len(path.name), path.name))
