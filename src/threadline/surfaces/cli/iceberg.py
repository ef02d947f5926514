"""``threadline iceberg``: the lake's rows as Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterable

import click
from rich.text import Text

from threadline.kernel.counted import counted
from threadline.kernel.time import SECOND, parse_duration
from threadline.surfaces.cli.printing import visible
from threadline.surfaces.cli.session import Session, lake_option, own_store_option
from threadline.surfaces.composition import IcebergDoor, IcebergSynced

READERS_GRACE = "1d"


@click.command()
@lake_option
@own_store_option
@click.pass_obj
def sync(session: Session) -> None:
    """Bring the lake up to the end of the log, and the tables up to the lake. It may be killed and repeated."""
    with session.engine(readonly=True) as engine:
        _show(session, _door(session).sync(engine))


@click.command()
@click.option(
    "--keep", default=READERS_GRACE, show_default=True, help="How long readers may still use what is replaced now."
)
@lake_option
@click.pass_obj
def compact(session: Session, keep: str) -> None:
    """Join small files, and delete those that were replaced some time ago."""
    _show(session, _door(session).compact(parse_duration(keep) / SECOND))


@click.command()
@lake_option
@click.pass_obj
def status(session: Session) -> None:
    """Show how far each table has come, and where its newest metadata is."""
    for workspace, table, position, waiting, rows, files, metadata in _door(session).standing():
        size = f"{counted(rows, 'row')} in {counted(files, 'file')}, {waiting:,} waiting"
        _print(session, f"{workspace}.{table}: at position {position:,}, {size}; {metadata}")


def _show(session: Session, synced: Iterable[IcebergSynced]) -> None:
    for workspace, table, added, erased, deleted in synced:
        done = f"{counted(added, 'row')} added, {erased:,} erased, {counted(deleted, 'file')} deleted"
        _print(session, f"{workspace}.{table}: {done}")


def _print(session: Session, line: str) -> None:
    session.console.print(Text(visible(line)), soft_wrap=True)


def _door(session: Session) -> IcebergDoor:
    return session.composition.iceberg(session.settings())
