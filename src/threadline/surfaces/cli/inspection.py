"""``threadline settings`` and ``catalogue``: what is in force, for people and as tables for the documentation."""

from __future__ import annotations

from typing import Any

import click

from threadline.settings import Described, describe, without_secret
from threadline.surfaces.cli.printing import answer, show
from threadline.surfaces.cli.session import Session, json_option, store_option
from threadline.surfaces.cli.tables import errors_table, operations_table
from threadline.surfaces.operation_calls import call


@click.command()
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print the settings in force as JSON.")
@click.pass_obj
def settings(session: Session, as_json: bool) -> None:
    """List all settings, what they are now, and why they exist. Secrets are not shown."""
    in_force = session.settings()
    rows = [
        {
            "setting": each.variable,
            "now": _shown(each, getattr(in_force, each.name)),
            "unit": each.unit,
            "reason": each.reason,
        }
        for each in describe()
    ]
    answer(rows, session.console, as_json=as_json)


@click.command()
@store_option
@json_option
@click.option("--markdown", is_flag=True, help="Print the tables of the documentation: operations, then codes.")
@click.pass_obj
def catalogue(session: Session, as_json: bool, markdown: bool) -> None:
    """List what is in force: projections, policies, operations and kinds of identifiers."""
    if markdown:
        _refuse_json(as_json)
        click.echo(f"{operations_table(session.composition.operations())}\n{errors_table()}", nl=False)
        return
    with session.engine(readonly=True) as engine:
        found = engine.catalogue
        if as_json:
            told = call(found.operation("catalogue"), session.context(engine), {}, strict=True)
            answer(told, session.console, as_json=True)
            return
    kinds = found.rules.kinds.values()
    show(
        {
            "projections": [
                {"name": each.name, "version": each.version, "ordered": each.ordered} for each in found.projections
            ],
            "policies": [{"name": each.name, "handles": sorted(each.handles or ["any"])} for each in found.policies],
            "operations": [
                {
                    "name": each.name,
                    "address": f"{each.method} {each.path}",
                    "scope": each.scope,
                    "summary": each.summary,
                }
                for each in found.operations
            ],
            "identifiers": [
                {"kind": each.name, "priority": each.priority, "limit": each.limit, "identifying": each.identifying}
                for each in sorted(kinds, key=lambda kind: (kind.priority, kind.name))
            ],
        },
        session.console,
    )


def _refuse_json(as_json: bool) -> None:
    if as_json:
        raise click.UsageError("--json and --markdown exclude each other; give one")


def _shown(each: Described, value: Any) -> Any:
    """A value as it may be seen. Any text may be an address by which somebody logs in."""
    if each.is_secret and value:
        return "(hidden)"
    return without_secret(value) if isinstance(value, str) else value
