"""``threadline events consumers`` and ``rewind``: who reads the feed in the background, and from where on."""

from __future__ import annotations

import click
import msgspec
from rich.table import Table
from rich.text import Text

from threadline.engine.delivery.feed_consumer import consumers as known_consumers
from threadline.engine.delivery.feed_consumer import rewind
from threadline.kernel.time import format_time
from threadline.surfaces.cli.printing import json_of, visible
from threadline.surfaces.cli.session import Session, json_option, store_option


class ConsumerView(msgspec.Struct, kw_only=True):
    """A consumer of the feed."""

    name: str
    position: int
    """Events that it has got."""
    processed_at: str
    behind_since: str
    """When the first event was recorded that it has not got; empty: it has all."""
    failures: int
    problem: str


@click.command("consumers")
@json_option
@store_option
@click.pass_obj
def consumers(session: Session, /, as_json: bool) -> None:
    """List who reads the feed in the background: topics, queues, indexes; how far each is, and why it stands still."""
    session.refuse_server()
    with session.engine(readonly=True) as engine:
        views = [
            ConsumerView(
                name=consumer.name,
                position=consumer.state.position,
                failures=consumer.state.failures,
                problem=consumer.state.problem,
                processed_at=format_time(consumer.state.processed_at) if consumer.state.processed_at else "",
                behind_since=format_time(consumer.behind_since) if consumer.behind_since else "",
            )
            for consumer in known_consumers(engine.store)
        ]
    if as_json:
        click.echo(json_of(views))
        return
    table = Table("consumer", "position", "last page", "behind since", "problem", box=None, padding=(0, 2, 0, 0))
    for view in views:
        cells = (view.name, f"{view.position:,}", view.processed_at, view.behind_since or "-", view.problem)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    session.console.print(table if views else "No consumer has read the feed yet.")


@click.command("rewind")
@click.argument("name")
@click.option("--to", "position", default=0, type=click.IntRange(0), help="The last position that it has got; 0: none.")
@store_option
@click.pass_obj
def rewind_command(session: Session, /, name: str, position: int) -> None:
    """Let a consumer of the feed go on after a position, back or ahead: events may go out again, or never.

    NAME: As `threadline events consumers` lists it, or of one that has not begun, such as topic:lead-events.
    """
    session.refuse_server()
    with session.engine() as engine:
        rewind(engine.store, name, position)
    click.echo(f"{name} goes on with position {position + 1:,}.")
