"""``threadline journeys show`` and ``threadline journeys what-if``: a journey drawn, and tried on history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from threadline.capabilities.reach.journeys.operations import definitions
from threadline.capabilities.reach.journeys.operations.definitions import JourneyParams, JourneyView
from threadline.capabilities.reach.journeys.operations.what_if import (
    JourneysWhatIfParams,
    JourneysWhatIfResult,
    WouldSendView,
)
from threadline.capabilities.reach.journeys.operations.what_if import what_if as what_if_operation
from threadline.kernel.counted import counted
from threadline.surfaces.cli.printing import json_of, visible
from threadline.surfaces.cli.session import Session, json_option, store_option, url_option, workspace_option
from threadline.surfaces.operation_calls import run

_SHOW = next(operation for operation in definitions.operations(()) if operation.name == "journeys_show")


@click.command("show")
@click.argument("name", metavar="NAME")
@click.option("--mermaid", is_flag=True, help="Print a flowchart for Mermaid instead of a tree.")
@json_option
@store_option
@workspace_option
@url_option
@click.pass_obj
def show(session: Session, /, name: str, mermaid: bool, as_json: bool) -> None:
    """Show a journey, drawn, with the people at each step."""
    journey: JourneyView = session.run(_SHOW, JourneyParams(name=name))
    if as_json:
        click.echo(json_of(journey))
    else:
        click.echo(journey.mermaid if mermaid else journey.drawing)
        if not mermaid:
            paused = f", paused since {journey.paused_since[:19]}Z" if journey.paused_since else ""
            click.echo(f"\n{counted(journey.people, 'person')} in it{paused}")


@click.command("what-if")
@click.argument("candidate", type=click.File("r"), metavar="FILE")
@click.option("--from", "start", metavar="TIME", help="As if it were switched on at this instant.")
@click.option("--to", "stop", metavar="TIME", help="Up to this instant; without it up to now.")
@click.option("--people", metavar="PERSON", multiple=True, help="Only this person. May be repeated.")
@click.option("--samples", type=click.IntRange(0, 1_000), default=10, show_default=True, help="People who are shown.")
@json_option
@store_option
@workspace_option
@url_option
@click.pass_obj
def what_if(session: Session, /, candidate: TextIO, people: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Try the journeys of a file on history: who would have got what, and when.

    FILE has a section `journeys`, which stands in the place of the one in force. Nothing is sent and nothing is stored.
    """
    params = JourneysWhatIfParams(definitions=candidate.read(), file=candidate.name, people=list(people), **given)
    if session.client() is not None:
        result: JourneysWhatIfResult = session.run(what_if_operation, params)
    else:
        with session.engine(readonly=True) as engine:  # it only reads, beside a running server too
            result = run(what_if_operation, session.context(engine), params)
    if as_json:
        click.echo(json_of(result))
    else:
        print_what_if(session.console, result)


def print_what_if(console: Console, result: JourneysWhatIfResult) -> None:
    """Print what came of it: counts of people and mails, and some people with theirs."""
    start = "the first event" if result.start.startswith("0001") else f"{result.start[:19]}Z"
    console.print(
        f"from {start} to {result.stop[:19]}Z: {counted(result.people, 'person')}; {result.people_old:,} would have "
        f"got mail by the journeys in force, {result.people_new:,} by the candidate; other mails, or at other times: "
        f"{counted(result.people_changed, 'person')}",
        highlight=False,
        markup=False,
    )
    for table in _tables(result):
        console.print()
        console.print(table)
    for person, problem in result.failures.items():
        console.print(Text.assemble(("failed", "red"), "  ", visible(f"{person}: {problem}")))


def _tables(result: JourneysWhatIfResult) -> Iterator[Table]:
    yield _table(
        ("journey", "entered", "held out", "left", "mails gone", "new mails", "at other times"),
        [
            (
                journey.journey,
                _change(journey.entered_old, journey.entered_new),
                _change(journey.holdout_old, journey.holdout_new),
                ", ".join(f"{reason} {count:,}" for reason, count in journey.left_new.items()),
                f"{journey.only_old:,}",
                f"{journey.only_new:,}",
                f"{journey.moved:,}",
            )
            for journey in result.journeys
        ],
    )
    yield _table(
        ("journey", "step", "template", "arm", "mails"),
        [(step.journey, step.step, step.template, step.arm, _change(step.old, step.new)) for step in result.steps],
    )
    if result.actions:
        actions = [(done.journey, done.step, done.action, _change(done.old, done.new)) for done in result.actions]
        yield _table(("journey", "step", "action", "times"), actions)
    samples = [
        (sample.identifiers[0] if sample.identifiers else sample.person, _mails(sample.old), _mails(sample.new))
        for sample in result.samples
    ]
    if samples:
        yield _table(("person", "in force", "candidate"), samples)


def _change(old: int, new: int) -> str:
    return f"{old:,}" if old == new else f"{old:,} → {new:,}"


def _mails(mails: list[WouldSendView]) -> str:
    return "\n".join(f"{mail.at[:16]} {mail.template}" for mail in mails)


def _table(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text("\n".join(map(visible, cell.split("\n")))) for cell in row))
    return table
