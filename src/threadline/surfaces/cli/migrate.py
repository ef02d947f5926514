"""``threadline migrate``: what a store on a server is kept in, made or brought up to date, and forms of identifiers."""

from __future__ import annotations

import click

from threadline.engine.engine import Engine
from threadline.engine.maintenance.identifier_forms import TwoForms, join_forms, two_forms
from threadline.kernel.counted import counted
from threadline.kernel.errors import Conflict
from threadline.settings import without_secret
from threadline.surfaces.cli.printing import visible
from threadline.surfaces.cli.session import SOURCE, Session, own_store_option


@click.command()
@click.option("--identifiers", is_flag=True, help="Join people who are known by two forms of one address or number.")
@click.option("--dry-run", is_flag=True, help="With --identifiers: show who would be joined, and join nobody.")
@own_store_option
@click.pass_obj
def migrate(session: Session, identifiers: bool, dry_run: bool) -> None:
    """Create or update the tables of a store on PostgreSQL or DynamoDB. A file does not need this.

    Run it before you start the new version. Processes of the previous version can keep working. With --identifiers it
    joins people instead, in any store: run that with the new version.
    """
    if dry_run and not identifiers:
        raise click.UsageError("--dry-run goes with --identifiers")
    if identifiers:
        with session.engine(readonly=dry_run) as engine:
            _join(engine, dry_run=dry_run)
        return
    settings = session.settings()
    steps = session.composition.migrate(settings)
    for step in steps:
        click.echo(f"taken: {step}")
    if not steps:
        click.echo(f"{without_secret(settings.store)} is up to date; there was nothing to do.")


def _join(engine: Engine, *, dry_run: bool) -> None:
    joined = apart = 0
    for pair in two_forms(engine.reader):
        against = pair.objection or ("" if dry_run else _refusal(engine, pair))
        joined, apart = joined + (not against), apart + bool(against)
        people = f"{pair.person} ({visible(str(pair.former))}) and {pair.other} ({visible(str(pair.normal))})"
        verb = "would be joined" if dry_run else "joined"
        click.echo(f"{people}: {f'left apart: {against}' if against else verb}")
    done = "would be joined" if dry_run else "joined"
    click.echo(f"{counted(joined, 'pair')} of people {done}, {apart:,} left apart")


def _refusal(engine: Engine, pair: TwoForms) -> str:
    """Joins a pair; why it could not be, or empty."""
    try:
        join_forms(engine.identity, pair, SOURCE)
    except Conflict as error:
        return str(error)
    return ""
