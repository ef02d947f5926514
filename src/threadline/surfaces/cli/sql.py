"""``threadline sql``, ``lake curate``, ``lake warehouse``: everybody's events and what follows from them, as tables."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from threadline.kernel.counted import counted
from threadline.surfaces.cli.printing import CELL_LENGTH_MAX, GAP, json_of, visible
from threadline.surfaces.cli.progress_bar import progress_bar
from threadline.surfaces.cli.session import Session, lake_option, own_store_option, workspace_option
from threadline.surfaces.composition import LakeDoor

SHOWN_MAX = 1_000
"""Rows that are shown as a table; CSV and JSON have all of them."""


@click.command()
@click.argument("query")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="json: an object a line.",
)
@lake_option
@own_store_option
@workspace_option
@click.pass_obj
def sql(session: Session, query: str, form: str) -> None:
    """Answer a QUERY in DuckDB's SQL, over the lake and whatever the store has that the lake has not.

    Without a lake, the first query about a long log reads it into columns beside the store. Later ones go on there.

    \b
    threadline sql "SELECT day, count(*) FROM daily_activity GROUP BY day ORDER BY day"
    threadline sql "SHOW TABLES"
    """
    show: dict[str, Callable[[Session, list[str], Iterator[list[Any]]], None]]
    show = {"table": _table, "json": _json, "csv": _csv}
    with session.engine(readonly=True) as engine, ExitStack() as stack:
        with progress_bar("Reading the log") as on_progress:
            names, rows = stack.enter_context(_door(session).query(engine, query, on_progress))
        show[form](session, names, rows)


@click.command()
@lake_option
@own_store_option
@workspace_option
@click.pass_obj
def curate(session: Session) -> None:
    """Write the curated tables into the lake. Only people with something new are recalculated."""
    with session.engine(readonly=True) as engine:
        for table, rows, size in _door(session).curate(engine):
            session.console.print(f"{table}: {counted(rows, 'row')}, {size:,} bytes", highlight=False)


@click.command()
@click.argument("kind", type=click.Choice(["redshift", "athena", "snowflake", "dbt"]))
@click.option("--schema", help="The schema, or database, of the tables.")
@click.option("--location", help="Where the warehouse finds the lake, if that is elsewhere: s3://bucket/prefix.")
@click.option("--role", help="Redshift: the role that may read the bucket.")
@click.option("--stage", help="Snowflake: the stage of the bucket.")
@lake_option
@own_store_option
@workspace_option
@click.pass_obj
def warehouse(session: Session, /, kind: str, **target: str | None) -> None:
    """Print SQL that creates the curated tables in a warehouse and loads them; or the sources file for dbt.

    It may be run again at any time: rows are merged by key, and those that are no more are removed.
    """
    given: Sequence[tuple[str, str]] = [(name, value) for name, value in target.items() if value is not None]
    with session.engine(readonly=True) as engine:
        click.echo(_door(session).warehouse(engine, kind, given), nl=False)


def _door(session: Session) -> LakeDoor:
    return session.composition.lake(session.settings())


def _table(session: Session, names: list[str], rows: Iterator[list[Any]]) -> None:
    shown = list(islice(rows, SHOWN_MAX))
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for number, name in enumerate(names):
        is_number = all(isinstance(row[number], int | float | None) for row in shown)
        table.add_column(Text(visible(name)), justify="right" if is_number else "left", overflow="ellipsis")
    for row in shown:
        table.add_row(*map(_cell, row))
    session.console.print(table)
    if more := sum(1 for _ in rows):
        session.console.print(f"and {counted(more, 'more row')}; --format csv or json has all of them", style="dim")


def _cell(value: Any) -> Text:
    text = Text("–", style="dim") if value is None else Text(visible(_written(value)))
    text.truncate(CELL_LENGTH_MAX, overflow="ellipsis")
    return text


def _json(session: Session, names: list[str], rows: Iterator[list[Any]]) -> None:
    for row in rows:
        click.echo(json_of(dict(zip(names, row, strict=True))))


def _csv(session: Session, names: list[str], rows: Iterator[list[Any]]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(names)
    writer.writerows([_written(value) for value in row] for row in rows)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json_of(value).decode()
