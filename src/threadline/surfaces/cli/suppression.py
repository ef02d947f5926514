"""``threadline suppression import`` and ``export``: lists of addresses from and for other systems."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from threadline.kernel.counted import counted
from threadline.kernel.limits import SUPPRESSIONS_PER_CALL_MAX
from threadline.surfaces.cli.printing import terminal, visible
from threadline.surfaces.cli.session import Session, store_option, url_option, workspace_option
from threadline.surfaces.operation_calls import call, convert, shown

_HEADINGS = ("address", "email", "email address", "e-mail", "emailaddress", "recipient")
_WRONG_SHOWN = 20
_PAGE = 1_000

Run = Callable[[str, dict[str, Any]], Any]
"""Operation, parameters -> its result."""


@click.command("import")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--reason", type=click.Choice(["bounce", "complaint", "manual", "import"]), default="import")
@click.option("--note", default="", help="Kept with every address, such as where the list comes from.")
@store_option
@workspace_option
@url_option
@click.pass_obj
def import_(session: Session, path: Path, reason: str, note: str) -> None:
    """Suppress every address of FILE: CSV with a column `address` or `email`, else the first of each line.

    Run twice, it adds nothing twice. Lines without an address are named, and the others are taken.
    """
    added = already = 0
    wrong: list[tuple[int, str]] = []
    with _runner(session) as run, _bar(path) as advance, path.open(encoding="utf-8-sig", newline="") as file:
        for page in _pages(file):
            given = {"addresses": [text for _, text in page], "reason": reason, "note": note}
            result = run("suppression_import", given)
            added, already = added + result.added, already + result.already
            wrong += [(page[mistake.number - 1][0], mistake.text) for mistake in result.wrong]
            advance(len(page))
    for line, text in wrong[:_WRONG_SHOWN]:
        click.echo(f"line {line:,}: {visible(text)!r} is not a mail address", err=True)
    if len(wrong) > _WRONG_SHOWN:
        click.echo(f"and {counted(len(wrong) - _WRONG_SHOWN, 'more line')}", err=True)
    click.echo(f"{counted(added, 'address', 'addresses')} suppressed, {already:,} already were, {len(wrong):,} wrong")
    if wrong and not added + already:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("target", metavar="[FILE]", type=click.File("w", encoding="utf-8", lazy=True), default="-")
@store_option
@workspace_option
@url_option
@click.pass_obj
def export(session: Session, target: TextIO) -> None:
    """Write all suppressed addresses as CSV to FILE, or to the standard output."""
    writer: Any = None
    cursor, number = "", 0
    with _runner(session, readonly=True) as run:
        while writer is None or cursor:
            page = run("suppression_list", {"cursor": cursor, "limit": _PAGE})
            if writer is None:
                writer = csv.writer(target)
                writer.writerow(("address", "reason", "suppressed_at", "by", "note"))
            for address in page.addresses:
                writer.writerow((address.address, address.reason, address.suppressed_at, address.by, address.note))
            number, cursor = number + len(page.addresses), page.next
    click.echo(counted(number, "address", "addresses"), err=True)


def _pages(file: TextIO) -> Iterator[list[tuple[int, str]]]:
    """(line, address) of a file, as many at a time as one call takes."""
    page: list[tuple[int, str]] = []
    column: int | None = None
    rows = csv.reader(file)
    for row in rows:
        if column is None:
            headings = [cell.strip().casefold() for cell in row]
            column = next((headings.index(name) for name in _HEADINGS if name in headings), None)
            if column is not None:
                continue
            column = 0
        text = row[column].strip() if len(row) > column else ""
        if not any(row):
            continue
        page.append((rows.line_num, text[:1_000]))
        if len(page) == SUPPRESSIONS_PER_CALL_MAX:
            yield page
            page = []
    if page:
        yield page


@contextmanager
def _runner(session: Session, *, readonly: bool = False) -> Iterator[Run]:
    """Runs operations on one open store, or on the server that the session names."""
    operations = shown(session.composition.operations(), "cli")
    if session.client() is not None:
        yield lambda name, given: session.run(operations[name], convert(operations[name], given, strict=True))
        return
    with session.engine(readonly=readonly) as engine:

        def run(name: str, given: dict[str, Any]) -> Any:
            declared = engine.catalogue.operation(name)
            return call(declared, session.context(engine), given, strict=True)

        yield run


@contextmanager
def _bar(path: Path) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr; without a terminal none."""
    console = terminal(stderr=True)
    with path.open("rb") as file:
        total = sum(1 for _ in file)
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.completed:,} of {task.total:,}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"Importing {visible(path.name)}", total=total)
        yield lambda done: progress.advance(task, done)
