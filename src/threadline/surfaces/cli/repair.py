"""``threadline repair``: good copies of damaged events, from a backup or another store."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from threadline.engine.maintenance.repair import repair as mend
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidSetting
from threadline.settings import load, without_secret
from threadline.surfaces.cli.printing import visible
from threadline.surfaces.cli.session import Session, own_store_option
from threadline.surfaces.cli.upkeep import SHOWN_MAX


@click.command()
@click.option(
    "--from", "source", metavar="BACKUP|URL", required=True, help="A backup, or any other store that has them."
)
@click.option("--dry-run", is_flag=True, help="Show what would be replaced; write nothing.")
@own_store_option
@click.pass_obj
def repair(session: Session, source: str, dry_run: bool) -> None:
    """Replace damaged events by copies from a backup or another store. Exits 1 if damaged events remain.

    Reads the whole log. A copy is used only if it is not damaged itself, and has the same id or the same place in the
    same thread. With an embedded store, stop the server first.
    """
    settings = load({"store": source, "cache": ""}, onto=session.settings())
    if "://" not in source and not Path(source).exists():
        raise InvalidSetting(f"there is no backup or store at {source}")
    console = session.console
    with (
        closing(session.composition.open_store(settings, True)) as copies,
        session.engine(readonly=dry_run) as engine,
    ):
        done = mend(engine.store, copies, engine.catalogue, engine.damage, preview=dry_run)
    name = without_secret(source)
    for damage, copy in done.mended[:SHOWN_MAX]:
        verb = "would be replaced" if dry_run else "replaced"
        console.print(visible(f"{damage.error}; {verb} by event {copy.id} of {name}"), highlight=False, markup=False)
    for damage in done.without_copy[:SHOWN_MAX]:
        console.print(visible(f"{damage.error}; {name} has no whole copy of it"), highlight=False, markup=False)
    for damage in done.changed[:SHOWN_MAX]:
        console.print(visible(f"{damage.error}; it could not be replaced"), highlight=False, markup=False)
    damaged = len(done.mended) + len(done.without_copy) + len(done.changed)
    console.print(
        f"{counted(done.entries, 'event')} read, {damaged:,} damaged: {len(done.mended):,} "
        f"{'to be replaced' if dry_run else 'replaced'}, {len(done.without_copy):,} without a copy, "
        f"{len(done.changed):,} not replaceable; {counted(done.refolded, 'person', 'people')} recalculated.",
        highlight=False,
    )
    if damaged > len(done.mended):
        raise click.exceptions.Exit(1)
