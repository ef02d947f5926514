"""``threadline mcp``: the Model Context Protocol over standard input and output."""

from __future__ import annotations

import sys

import click

from threadline.surfaces.cli.session import Session, own_store_option, workspace_option
from threadline.surfaces.log_lines import log_lines

SOURCE = "mcp"
"""The source of what is recorded through it."""


@click.command()
@own_store_option
@workspace_option
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["read", "write", "admin", "personal"]),
    default=["read"],
    show_default=True,
    help="What the agent may do; may be given several times.",
)
@click.pass_obj
def mcp(session: Session, scopes: tuple[str, ...]) -> None:
    """Serve tools for AI agents on standard input and output (Model Context Protocol).

    An agent's program starts it. Without other scopes it reads, beside a running server too, and sees personal data
    masked; `personal` shows it. `write` and `admin` need the store to themselves. A server has the same tools at /mcp,
    for tokens with these scopes.
    """
    from threadline.surfaces.mcp.protocol import Protocol
    from threadline.surfaces.mcp.stdio import serve
    from threadline.surfaces.mcp.tool import Caller
    from threadline.surfaces.version import package_version

    log_lines()
    writes = bool({"write", "admin"} & set(scopes))
    caller = Caller(session.settings().workspace, SOURCE, tuple(sorted({*scopes, "read"})), over_wire=False)
    with session.engine(readonly=not writes) as engine:
        serve(Protocol(engine, package_version()), lambda: caller, sys.stdin.buffer, sys.stdout.buffer)
