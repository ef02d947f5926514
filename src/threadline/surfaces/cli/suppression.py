"""``threadline suppression import`` and ``export``: lists of addresses from and for other systems."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from threadline.kernel.address import normal_address
from threadline.kernel.counted import counted
from threadline.kernel.limits import SUPPRESSIONS_PER_CALL_MAX
from threadline.surfaces.cli.printing import terminal, visible
from threadline.surfaces.cli.session import Session, store_option, url_option, workspace_option
from threadline.surfaces.operation_calls import call, convert, shown

_HEADINGS = (
    "address",
    "email",
    "emailaddress",
    "recipient",
    "mail",
    "emailadresse",
    "mailadresse",
    "correo",
    "courriel",
)
"""What a column of addresses is called, in small letters alone."""
_DELIMITERS = ",;\t"
_LOOKED_AT = 20
"""Rows after the first that are looked at for the column of a file whose headings say nothing."""
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
    """Suppress every address of FILE: text with a column of addresses, separated by commas, semicolons or tabs.

    It is the column called address or email, else the first that holds one. Run twice, it adds nothing twice. Lines
    without an address are named, and the others are taken.
    """
    added = already = 0
    wrong: list[tuple[int, str]] = []
    with _runner(session) as run, _bar(path) as advance, path.open(encoding="utf-8-sig", newline="") as file:
        column = _column_of(file)
        if column.shown:
            click.echo(f"The addresses are those of {column.shown}.")
        for page in _pages(file, column):
            given = {"addresses": [text for _, text in page], "reason": reason, "note": note}
            result = run("suppression_import", given)
            added, already = added + result.added, already + result.already
            wrong += [(page[mistake.number - 1][0], mistake.reason or mistake.text) for mistake in result.wrong]
            advance(len(page))
    for line, why in wrong[:_WRONG_SHOWN]:
        click.echo(f"line {line:,}: {visible(why)}", err=True)
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


class _Column(NamedTuple):
    """Where in a file the addresses stand."""

    delimiter: str
    at: int
    skipped: int
    """Lines before the first address: the headings."""
    shown: str
    """The column in words; empty for a file with only one."""


def _column_of(file: TextIO) -> _Column:
    """The column of a file that holds the addresses. The file is at its beginning again afterwards."""
    lines = [line for _, line in zip(range(_LOOKED_AT), file, strict=False)]
    file.seek(0)
    named = lines[0].strip() if lines else ""
    skipped = int(named.startswith("sep="))
    delimiters = named[-1] if skipped and len(named) == len("sep=;") else _DELIMITERS  # Excel writes such a line
    return min((_column(lines, skipped, delimiter) for delimiter in delimiters), key=itemgetter(0))[1]


def _column(lines: Sequence[str], skipped: int, delimiter: str) -> tuple[int, _Column]:
    """The column with the addresses if a file has this delimiter, and how much is against it (0: nothing)."""
    rows = list(csv.reader(lines[skipped:], delimiter=delimiter))
    first = rows[0] if rows else []
    headings = [re.sub(r"[\W_]", "", cell).casefold() for cell in first]
    for name in _HEADINGS:
        if name in headings:
            index = headings.index(name)
            shown = f"column {index + 1}, {visible(first[index].strip())!r}" if len(first) > 1 else ""
            return 0, _Column(delimiter, index, skipped + 1, shown)
    for number, row in enumerate(rows):
        for index, cell in enumerate(row):
            if normal_address(cell):
                # Where the first line has several cells and no address, it is one of headings.
                skipped += number > 0 and len(first) > 1
                return 1, _Column(delimiter, index, skipped, f"column {index + 1}" if len(row) > 1 else "")
    return 2, _Column(delimiter, 0, skipped, "")


def _pages(file: TextIO, column: _Column) -> Iterator[list[tuple[int, str]]]:
    """(line, address) of a file, as many at a time as one call takes."""
    page: list[tuple[int, str]] = []
    rows = csv.reader(file, delimiter=column.delimiter)
    for row in rows:
        if rows.line_num <= column.skipped or not any(row):
            continue
        text = row[column.at].strip() if len(row) > column.at else ""
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
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,} of {task.total:,}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"Importing {visible(path.name)}", total=total)
        yield lambda done: progress.advance(task, done)
