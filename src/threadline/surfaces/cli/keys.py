"""``threadline keys``: write keys and tokens of a store that no server holds."""

from __future__ import annotations

from typing import Any

import click

from threadline.surfaces.cli.printing import answer
from threadline.surfaces.cli.session import Session, json_option, store_option, workspace_option
from threadline.surfaces.operation_calls import call


@click.group()
def keys() -> None:
    """Create, list and revoke write keys and tokens.

    A write key only records, and names the source of what it records. A token reads, writes or administers. Beside a
    running server use its addresses under /v1/keys instead: only one process writes to a store.
    """


@keys.command()
@click.argument("name")
@click.option("--token", is_flag=True, help="Make a token for the API instead of a write key.")
@click.option(
    "--scope", multiple=True, help="What a token may do: read, write or admin; default: read. May be repeated."
)
@json_option
@store_option
@workspace_option
@click.pass_obj
def create(session: Session, name: str, token: bool, scope: tuple[str, ...], as_json: bool) -> None:
    """Make a key and print its secret, this once."""
    if scope and not token:
        raise click.UsageError("--scope is for tokens; add --token")
    values = {
        "name": name,
        "kind": "token" if token else "write_key",
        "scopes": list(scope or ("read",)) if token else [],
    }
    _run(session, "key_create", values, as_json)


@keys.command("list")
@json_option
@store_option
@workspace_option
@click.pass_obj
def list_(session: Session, as_json: bool) -> None:
    """List the keys of the workspace, without their secrets."""
    _run(session, "keys", {}, as_json, readonly=True)


@keys.command()
@click.argument("id")
@json_option
@store_option
@workspace_option
@click.pass_obj
def revoke(session: Session, id: str, as_json: bool) -> None:
    """Take a key away; ID is what the list shows."""
    _run(session, "key_revoke", {"id": id}, as_json)


def _run(session: Session, name: str, values: dict[str, Any], as_json: bool, readonly: bool = False) -> None:
    with session.engine(readonly=readonly) as engine:
        result = call(engine.catalogue.operation(name), session.context(engine), values, strict=True)
    answer(result, session.console, as_json=as_json)
