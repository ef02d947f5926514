"""``threadline settings`` and ``catalogue``: what is in force, for people and as tables for the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from threadline.capabilities.foundation.events.operations.catalogue import CatalogueView
from threadline.kernel.event_type import EventType
from threadline.kernel.operation import Operation
from threadline.settings import Described, describe, without_secret
from threadline.surfaces.cli.printing import answer, show
from threadline.surfaces.cli.session import Session, json_option, store_option, url_option, workspace_option
from threadline.surfaces.event_type_rows import event_type_rows
from threadline.surfaces.http.documents.codes import error_codes
from threadline.surfaces.operation_calls import shown


def operations_table(operations: Iterable[Operation]) -> str:
    """Every operation by its group, as docs/http.md shows it."""
    rows: dict[str, list[str]] = {}
    for operation in sorted(operations, key=lambda item: (item.group is not None, item.name)):
        group = (
            "beside the groups"
            if operation.group is None
            else f"`{operation.group.name}`: {operation.group.summary.rstrip('.')}"
        )
        scope = "" if (operation.method, operation.scope) == ("GET", "read") else f" {operation.scope}"
        rows.setdefault(group, []).append(f"`{operation.verb}` {operation.method} `{operation.path}`{scope}")
    lines = [f"| {group} | {', '.join(entries)} |" for group, entries in rows.items()]
    return "\n".join(["| group | operations |", "|---|---|", *lines]) + "\n"


def errors_table() -> str:
    """Every code of an error or a rejection, as docs/errors.md shows it."""
    lines = ["| code | status | meaning |", "|---|---|---|"]
    lines += [f"| `{code}` | {status} | {meaning} |" for code, status, meaning in error_codes()]
    return "\n".join(lines) + "\n"


def event_types_table(types: Iterable[EventType]) -> str:
    """Every type that is declared, as docs/event-types.md shows it."""
    lines = ["| type | what happened | said by | properties | never erased by age, because |", "|---|---|---|---|---|"]
    lines += [
        f"| `{row.name}` | {row.about} | {row.speaker} | {row.properties} | {row.lasts} |"
        for row in event_type_rows(types)
    ]
    return "\n".join(lines) + "\n"


@click.command()
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print the settings in force as JSON.")
@click.pass_obj
def settings(session: Session, as_json: bool) -> None:
    """List all settings, what they are now, and why they exist. Secrets are not shown."""
    in_force = session.settings()
    rows = [
        {
            "setting": setting.variable,
            "now": _shown(setting, getattr(in_force, setting.name)),
            "unit": setting.unit,
            "reason": setting.reason,
        }
        for setting in describe()
    ]
    answer(rows, session.console, as_json=as_json)


@click.command()
@store_option
@workspace_option
@url_option
@json_option
@click.option("--markdown", is_flag=True, help="Print the tables of the documentation: operations, codes, event types.")
@click.pass_obj
def catalogue(session: Session, as_json: bool, markdown: bool) -> None:
    """List what is in force: projections, policies, operations and kinds of identifiers."""
    if markdown:
        _refuse_json(as_json)
        types = session.composition.in_force(session.settings()).event_types.declared.values()
        tables = (operations_table(session.composition.operations()), errors_table(), event_types_table(types))
        click.echo("\n".join(tables), nl=False)
        return
    asked = shown(session.composition.operations(), "cli")["catalogue"]
    view: CatalogueView = session.run(asked, asked.params())
    if as_json:
        answer(view, session.console, as_json=True)
        return
    columns = {
        "projections": ("name", "version", "ordered"),
        "policies": ("name", "handles"),
        "operations": ("name", "method", "path", "scope", "summary"),
        "identifiers": ("name", "priority", "limit", "identifying"),
    }
    plain = msgspec.to_builtins(view)
    show(
        {part: [{name: entry[name] for name in names} for entry in plain[part]] for part, names in columns.items()},
        session.console,
    )


def _refuse_json(as_json: bool) -> None:
    if as_json:
        raise click.UsageError("--json and --markdown exclude each other; give one")


def _shown(setting: Described, value: Any) -> Any:
    """A value as it may be seen. Any text may be an address by which somebody logs in."""
    if setting.is_secret and value:
        return "(hidden)"
    return without_secret(value) if isinstance(value, str) else value
