"""``threadline lake refold``: everybody's states made anew from the lake, beside a store that is written to."""

from __future__ import annotations

import time

import click

from threadline.capabilities.foundation.definitions.document import BY_HAND
from threadline.kernel.counted import counted
from threadline.settings import definition_files, definitions_file
from threadline.surfaces.cli.session import Session, lake_option, own_store_option

SHOWN_MAX = 20
"""People whose states differ that are named; all of them are counted."""


@click.command()
@own_store_option
@lake_option
@click.option("--workspace", "-w", metavar="NAME", default=None, help="Only this workspace; default: all.")
@click.option(
    "--spark",
    metavar="MASTER",
    is_flag=False,
    flag_value="",
    default=None,
    help="Fold on Spark, such as local[4]; without MASTER as spark-submit says.",
)
@click.option("--check", is_flag=True, help="Then compare the states with those of the store; exits 1 if any differ.")
@click.pass_obj
def refold(session: Session, workspace: str | None, spark: str | None, check: bool) -> None:
    """Recalculate everybody from the lake, and publish the states there.

    With DuckDB on this machine, or with Spark on many, by the definitions in force. Of the store it reads only the
    definitions that were made by hand, unless you say --check. Earlier states stay until the new ones are complete.
    """
    settings = session.settings()
    lake = session.composition.lake(settings)
    began = time.monotonic()
    texts = [(str(file), file.read_text("utf-8")) for file in definition_files(definitions_file(settings))]
    if by_hand := session.composition.made_by_hand(settings).text:
        texts.append((BY_HAND, by_hand))
    done = lake.refold(texts, workspace, spark)
    seconds = time.monotonic() - began
    session.console.print(
        f"{counted(done['people'], 'person')} folded from {counted(done['events'], 'event')} in {seconds:.1f} s "
        f"({done['events'] / max(seconds, 1e-9):,.0f} events/s), into {counted(done['files'], 'file')}.",
        highlight=False,
    )
    if not check:
        return
    with session.engine(readonly=True) as engine:
        checked = lake.check_states(engine)
    differing = checked["differing"]
    session.console.print(
        f"{counted(checked['people'], 'person')} compared with the store: {len(differing):,} differ; "
        f"{checked['newer']:,} have other events there than in the lake.",
        highlight=False,
    )
    for person in differing[:SHOWN_MAX]:
        session.console.print(f"differs  {person}", highlight=False)
    if differing:
        raise click.exceptions.Exit(1)
