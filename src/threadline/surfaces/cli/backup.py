"""``threadline backup`` and ``restore``: the embedded store in one file, and back from it."""

from __future__ import annotations

import time
from pathlib import Path

import click

from threadline.kernel.counted import counted
from threadline.surfaces.cli.progress_bar import progress_bar
from threadline.surfaces.cli.session import Session, own_store_option


@click.command()
@click.argument("into", metavar="BACKUP", type=click.Path(dir_okay=False, path_type=Path))
@own_store_option
@click.pass_obj
def backup(session: Session, into: Path) -> None:
    """Copy the embedded store into BACKUP, as it is at this moment, while a server goes on writing.

    The copy is checked before it gets its name. An existing BACKUP is not overwritten.
    """
    began = time.monotonic()
    with progress_bar("Copying") as progress:
        events, size, _ = session.composition.back_up(session.settings(), into, progress)
    seconds = time.monotonic() - began
    session.console.print(
        f"{into}: {counted(events, 'event')}, {size:,} bytes, whole; {seconds:.1f} s.", highlight=False, markup=False
    )


@click.command()
@click.argument("backup", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace an existing store, which gets another name.")
@own_store_option
@click.pass_obj
def restore(session: Session, backup: Path, replace: bool) -> None:
    """Check BACKUP, and put it in place of the embedded store.

    Stop the server first: a store in use is not replaced. Mail that was sent after the backup may be due again.
    """
    settings = session.settings()
    with progress_bar("Copying") as progress:
        events, size, aside = session.composition.restore(settings, backup, progress, replace)
    session.console.print(
        f"{settings.store}: {counted(events, 'event')}, {size:,} bytes, whole.", highlight=False, markup=False
    )
    with session.engine() as engine:  # opening it does again what the ledger of erasures has that lies beside it
        erased = engine.erasures.done_again
    if erased:
        session.console.print(f"{counted(erased, 'erasure')} since the backup done again.", highlight=False)
    if aside is not None:
        session.console.print(f"The store that was there is {aside} now.", highlight=False, markup=False)
