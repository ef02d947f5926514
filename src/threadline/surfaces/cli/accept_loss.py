"""``threadline accept-loss``: the operator's word that a store goes on without what its files have lost."""

from __future__ import annotations

import click

from threadline.surfaces.cli.printing import visible
from threadline.surfaces.cli.session import Session, own_store_option


@click.command("accept-loss")
@click.option("--yes", is_flag=True, help="Do not ask.")
@own_store_option
@click.pass_obj
def accept_loss(session: Session, yes: bool) -> None:
    """Accept that an embedded store has lost acknowledged events, so that it opens again.

    This applies to the present loss only. The damaged files are kept under new names. Exits 1 if the rest of the store
    is damaged: then restore a backup.
    """
    settings = session.settings()
    loss = session.composition.find_loss(settings)
    if loss is None:
        _print(session, f"{settings.store}: nothing that was acknowledged is gone.")
        return
    _print(session, f"{settings.store}: {loss}")
    if not yes:
        click.confirm("Go on without it?", abort=True)
    files, faults = session.composition.accept_loss(settings)
    for file in files:
        _print(session, f"A copy of the damaged file is {file}.")
    for fault in faults:
        _print(session, f"damaged: {fault}")
    if faults:
        raise click.exceptions.Exit(1)
    _print(session, "The store can be opened. Sources may send what is gone again.")


def _print(session: Session, text: str) -> None:
    session.console.print(visible(text), markup=False, highlight=False, soft_wrap=True)
