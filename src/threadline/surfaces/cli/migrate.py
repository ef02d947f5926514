"""``threadline migrate``: what a store on a server is kept in, made or brought up to date."""

from __future__ import annotations

import click

from threadline.settings import without_secret
from threadline.surfaces.cli.session import Session, own_store_option


@click.command()
@own_store_option
@click.pass_obj
def migrate(session: Session) -> None:
    """Make the tables of a store on a server, or bring them up to date. A file needs none of this.

    Run it before the new version is started. Processes of the version before go on working meanwhile and afterwards.
    """
    settings = session.settings()
    steps = session.composition.migrate(settings)
    for step in steps:
        click.echo(f"taken: {step}")
    if not steps:
        click.echo(f"{without_secret(settings.store)} is up to date; there was nothing to do.")
