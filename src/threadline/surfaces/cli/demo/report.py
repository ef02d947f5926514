"""What the demo prints: headings, one customer's whole picture, the best customers, what to try next."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from threadline.surfaces.cli.demo.history import AFTERWARDS, CURRENCY, has_mail
from threadline.surfaces.cli.demo.server import Server

INDENT = 2
BAR_COLUMNS = 24
_STATUS_STYLES = {"PRESENT": "green", "STALE": "yellow", "NOT_FOUND": "dim"}


def heading(console: Console, text: str) -> None:
    """Open a chapter."""
    console.print()
    console.print(Text(text, style="bold"))


def say(console: Console, text: str, style: str = "") -> None:
    """A sentence, set in a little."""
    console.print(Padding(Text(text, style=style), (0, 0, 0, INDENT), expand=False))


def request(console: Console, path: str, seconds: float) -> None:
    """What was asked over HTTP, so that the reader can ask it again."""
    took = f"  {1_000 * seconds:,.1f} ms" if seconds < 1 else f"  {seconds:,.2f} s"
    console.print(
        Padding(Text.assemble(("GET ", "cyan"), (path, "cyan"), (took, "dim")), (0, 0, 0, INDENT), expand=False)
    )


def sending(console: Console) -> Progress:
    """The bar that shows how far the history has been told. In a file or a pipe there is none."""
    columns = (
        TextColumn(" " * INDENT + "{task.description}"),
        BarColumn(40),
        TextColumn("{task.completed:,} orders"),
        TextColumn("[dim]{task.fields[day]}"),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def customer(person: Mapping[str, Any], then: Mapping[str, Any]) -> RenderableType:
    """Everything known of one person; ``then`` is the feature vector as of the day after the history."""
    names = ", ".join(f"{identifier['kind']}:{identifier['value']}" for identifier in person["identifiers"])
    tree = Tree(Text(names, style="bold magenta"), guide_style="dim")
    activity = person["activity"]
    first, last = activity["first_seen_at"][:10], activity["last_seen_at"][:10]
    tree.add(Text.assemble(("activity  ", "bold"), f"{activity['events']} events, {first} to {last}"))
    tree.add(Group(Text("features", style="bold"), _features(person["features"], then["features"])))
    tree.add(Group(Text("timeline, newest first", style="bold"), _timeline(person["timeline"]["events"])))
    return Padding(tree, (0, 0, 0, INDENT), expand=False)


def _features(now: Mapping[str, Any], then: Mapping[str, Any]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("as of", no_wrap=True)
    table.add_column(str(AFTERWARDS), justify="right")
    table.add_column("today", justify="right")
    table.add_column("unit", style="dim")
    table.add_column("status")
    known = {name: feature for name, feature in now.items() if feature["status"] != "NOT_FOUND"}
    for name, feature in known.items():
        unit = feature.get("currency") or feature.get("unit", "")
        status = Text(feature["status"], style=_STATUS_STYLES[feature["status"]])
        table.add_row(name, _value(then[name]["value"]), _value(feature["value"]), unit, status)
    rest = f"{len(now) - len(known)} more are NOT_FOUND: no event that they are made of has come."
    return Group(table, Text(rest, style="dim"))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}" if value >= 1 else f"{value:.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else "–" if value is None else str(value)


def _timeline(events: Sequence[Mapping[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    for event in (item for item in events if item["type"] == "purchase_completed"):
        properties = event["properties"]
        table.add_row(
            event["occurred_at"][:10],
            event["type"],
            f"{properties['total']:,.2f} {properties['currency']}",
            _cds(properties["cds"]),
        )
    return table


def _cds(count: int) -> str:
    return f"{count} CD" if count == 1 else f"{count} CDs"


def segment(answer: Mapping[str, Any]) -> str:
    """Whether a person belongs to a segment, and the condition that decides."""
    step = answer["steps"][0]
    condition = f"{step['field']} is {step['actual']}, {step['operator'].replace('_', ' ')} {step['expected']}"
    return f"{answer['segment']}: {'a member' if answer['member'] else 'no member'}, for {condition}."


def streak(answer: Mapping[str, Any]) -> str:
    """The longest run of months with an order."""
    run = answer["streaks"]["months"]["longest_run"]
    return f"months with an order: {run['length']} in a row at most, {run['from']} to {run['to']}."


def best(top: Mapping[str, Any]) -> RenderableType:
    """The ranking of a feature, with bars."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", justify="right", style="dim")
    table.add_column("customer", style="magenta")
    table.add_column(f"{top['name']}, {CURRENCY}", justify="right")
    table.add_column("")
    highest = max(entry["value"] for entry in top["top"])
    for entry in top["top"]:
        bar = "█" * max(1, round(BAR_COLUMNS * entry["value"] / highest))
        table.add_row(str(entry["rank"]), ", ".join(entry["identifiers"]), f"{entry['value']:,.2f}", Text(bar, "green"))
    return Padding(table, (0, 0, 0, INDENT), expand=False)


def to_try(console: Console, server: Server, person: str) -> None:
    """Commands that are ready to be pasted; lines are left whole, however narrow the terminal is."""
    for title, line in _commands(server, person):
        console.print()
        say(console, title, "dim")
        # What stands in a frame or a wrapped line cannot be copied.
        console.print(" " * INDENT + line, soft_wrap=True, highlight=False, markup=False)


def _commands(server: Server, person: str) -> Iterator[tuple[str, str]]:
    bearer = f"-H 'Authorization: Bearer {server.token}'"
    properties = f'{{"total":20,"currency":"{CURRENCY}"}}'
    order = f'{{"userId":"{person.partition(":")[2]}","event":"Order Completed","properties":{properties}}}'
    yield f"The console, in a browser; sign in with the token {server.token}", f"{server.url}/"
    yield "The whole API, address by address", f"{server.url}/docs"
    yield "All that is known of this customer", f"curl -s {server.url}/v1/people/{person} {bearer}"
    yield (
        "What was known on a day in between",
        f"curl -s '{server.url}/v1/people/{person}/features?as_of=1997-10-01&names=monetary_total' {bearer}",
    )
    yield (
        "Another order, today; then ask for the customer again",
        f"curl -s {server.url}/v1/track -u {server.write_key}: -d '{order}'",
    )
    yield (
        "The same from the command line, beside the server",
        f"{_program()} person {person} --all --file {server.file}",
    )
    if has_mail():
        yield "The mails that were sent, and their templates", f"{server.url}/dev/inbox#token={server.token}"
    yield (
        "For the commands on the page of the API",
        f"export TOKEN={server.token} WRITE_KEY={server.write_key}",
    )


def _program() -> str:
    """How this program was called, if it can be called so again."""
    called = Path(sys.argv[0])
    if called.name != "threadline" or not called.is_file():
        return f"{sys.executable} -m threadline"
    near = os.path.relpath(called)
    return str(called) if near.startswith("..") else near
