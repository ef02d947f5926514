"""``threadline import``: a file of history into the store, with a progress bar, resumable, harmless to repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.reach.consent.events import REOPENS, SUBSCRIBED
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event
from threadline.kernel.time import format_time, system_clock
from threadline.surfaces.cli.consequences import confirm, show
from threadline.surfaces.cli.printing import json_of, terminal, visible
from threadline.surfaces.cli.session import Session, own_store_option, workspace_option
from threadline.surfaces.importing.guessing import columns_of, delimiter_of, guessed
from threadline.surfaces.importing.recording import Summary, check_file, foretell_file, import_file, may_send
from threadline.surfaces.importing.rows import Plan, is_worth_a_process, preview
from threadline.wire.table import parse_mapping
from threadline.wire.table_mapping import READINGS

EPILOG = """
\b
A mapping (--map shop.yaml) says which column is what; options change single lines of it:
\b
  type: purchase_completed              # or {column: kind, names: {sale: purchase_completed}}
  time: {column: day, format: "%Y%m%d", zone: Europe/Rome}    # or just: time: day
  user_id: customer                     # also anonymous_id, email, phone; others: identifiers: {kind: column}
  properties: {total: {column: dollars, number: true}, currency: {value: USD}, "*": true}
  key: [order_id]                       # what names a row for ever; without it the file's name and the row's number
"""


@click.command("import", epilog=EPILOG)
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--map", "map_path", metavar="YAML", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--type", "type_", metavar="TYPE", help="The type of every event.")
@click.option("--time", "time_", metavar="COLUMN", help="When it happened.")
@click.option(
    "--time-format", metavar="FORMAT", help="iso (default), excel, unix, unix_ms, unix_us, or a pattern such as %Y%m%d."
)
@click.option("--zone", metavar="NAME", help="The zone of times that name none; default: UTC.")
@click.option("--user-id", metavar="COLUMN", help="The user's id.")
@click.option("--email", metavar="COLUMN", help="The user's e-mail address.")
@click.option("--identifier", "identifiers", metavar="KIND=COLUMN", multiple=True, help="Any other identifier.")
@click.option(
    "--property",
    "properties",
    metavar="NAME=COLUMN[:READING]",
    multiple=True,
    help="A property, read as number, decimal_comma, boolean or json; by default as text.",
)
@click.option("--all-columns", is_flag=True, help="Every column that nothing else names becomes a property.")
@click.option(
    "--key", "keys", metavar="COLUMN", multiple=True, help="A column that names a row for ever. May be repeated."
)
@click.option("--source", default="import", show_default=True, help="The source of the events.")
@click.option("--delimiter", default="", metavar="SIGN", help="The delimiter of CSV; default: a comma, for .tsv a tab.")
@click.option(
    "--dry-run", is_flag=True, help="Check every row, show what the first 5 would become, and record nothing."
)
@click.option(
    "--suggest", is_flag=True, help="Print a mapping to begin with, by the columns and first rows, and import nothing."
)
@click.option(
    "--reopen",
    is_flag=True,
    help="With --type subscribed: subscribe those again, too, who have unsubscribed themselves.",
)
@click.option("--yes", is_flag=True, help="Do not check first what would be sent, and do not ask.")
@click.option("--again", is_flag=True, help="Read all rows, even those that an earlier run has settled.")
@own_store_option
@workspace_option
@click.pass_obj
def command(
    session: Session,
    /,
    path: Path,
    map_path: Path | None,
    source: str,
    delimiter: str,
    dry_run: bool,
    suggest: bool,
    again: bool,
    yes: bool,
    **columns: Any,
) -> None:
    """Import a CSV, JSONL (each .gz or not) or Parquet FILE as history.

    Run it again after an interruption, and it continues from there; run it twice and nothing is recorded twice.
    Rows that cannot be recorded are kept in the rejected log with their numbers.
    """
    if suggest:
        sign = delimiter or delimiter_of(path)
        suggested = guessed(columns_of(path, sign), columns["type_"] or IDENTIFY)
        click.echo(yaml.safe_dump(suggested, sort_keys=False, allow_unicode=True), nl=False)
        return
    mapping = parse_mapping(declared_mapping(map_path, columns))
    plan = Plan(path, mapping, session.settings().workspace, source, delimiter)
    if dry_run:
        _show_preview(session.console, plan)
        with _bar(path) as advance:
            summary = check_file(session.composition.in_force(session.settings()), plan, advance)
        _show_check(session.console, summary)
        _foretell(session, plan, again=again)
        session.console.print("Nothing was recorded.", style="dim")
        if summary.futile:
            raise click.exceptions.Exit(1)
        return
    began = time.monotonic()
    try:
        with session.engine() as engine:
            if not yes and may_send(engine, plan.workspace):
                consequences, _ = foretell_file(engine, plan, again=again)
                show(session.console, consequences)
                confirm(consequences, yes=yes)
            with _bar(path) as advance:
                beside = is_worth_a_process(path)
                summary = import_file(engine, plan, again=again, beside=beside, advance=advance)
    except KeyboardInterrupt:
        terminal(stderr=True).print("Interrupted. The same command continues from there.")
        raise
    _show(session.console, summary, time.monotonic() - began)
    if summary.futile:
        # The mapping is wrong, or the keys are taken, and whoever runs this in a script has to notice, however often.
        session.console.print("Not one row is recorded.")
        raise click.exceptions.Exit(1)


def declared_mapping(map_path: Path | None, columns: dict[str, Any]) -> dict[str, Any]:
    """The mapping that a file and options declare together; an option wins. Raises `InvalidDefinition`."""
    declared = _from_file(map_path) if map_path is not None else {}
    if columns["type_"]:
        declared["type"] = columns["type_"]
    if columns["time_"] or columns["time_format"] or columns["zone"]:
        known = declared.get("time", {})
        rule = dict(known) if isinstance(known, dict) else {"column": known}
        given = {"column": columns["time_"], "format": columns["time_format"], "zone": columns["zone"]}
        declared["time"] = rule | {name: value for name, value in given.items() if value}
    for kind in ("user_id", "email"):
        if columns[kind]:
            declared[kind] = columns[kind]
    if columns["identifiers"]:
        declared["identifiers"] = dict(declared.get("identifiers", {})) | dict(
            _pair(text, "--identifier", "KIND=COLUMN") for text in columns["identifiers"]
        )
    _add_properties(declared, columns)
    if columns["keys"]:
        declared["key"] = list(columns["keys"])
    if columns["reopen"]:
        if declared.get("type") != SUBSCRIBED:
            raise click.BadParameter("is for a file of subscriptions: --type subscribed", param_hint="--reopen")
        declared["properties"] = {**dict(declared.get("properties", {})), REOPENS: {"value": True}}
    return declared


def _add_properties(declared: dict[str, Any], columns: dict[str, Any]) -> None:
    given: dict[str, Any] = {}
    for text in columns["properties"]:
        name, rule = _pair(text, "--property", "NAME=COLUMN[:READING]")
        column, colon, reading = rule.rpartition(":")
        # A column may have a colon in its name; only a known reading after it is one.
        given[name] = {"column": column, reading: True} if colon and reading in READINGS else rule
    if columns["all_columns"]:
        given["*"] = True
    if given:
        known = declared.get("properties", {})
        declared["properties"] = ({"*": True} if known == "*" else dict(known)) | given


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.BadParameter(f"{text!r} is not {form}", param_hint=option)
    return name, value


def _from_file(path: Path) -> dict[str, Any]:
    try:
        declared = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise InvalidDefinition(f"{path}: {error}") from None
    if not isinstance(declared, dict):
        raise InvalidDefinition(f"{path}: a mapping has lines such as `type: purchase_completed`")
    return declared


@contextmanager
def _bar(path: Path) -> Iterator[Callable[[Summary, int], None]]:
    """A progress bar on stderr, so that what is printed can be piped."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    began = time.monotonic()
    console = terminal(stderr=True)
    # Without a terminal it would be drawn ten times a second for nobody.
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"Importing {visible(path.name)}", total=_total(path), rate="")

        def advance(summary: Summary, done: int) -> None:
            rate = summary.rows / max(time.monotonic() - began, 1e-9)
            progress.update(task, completed=done, rate=f"{summary.rows:,} rows, {rate:,.0f}/s")

        yield advance


def _total(path: Path) -> int:
    from threadline.surfaces.importing.files import open_rows

    with closing(open_rows(path)) as file:
        return file.size


def _show_preview(console: Console, plan: Plan) -> None:
    for number, read in enumerate(preview(plan, system_clock()), 1):
        console.print(f"row {number}", style="bold")
        shown = _readable(read) if isinstance(read, Event) else {"rejected": read.code, "message": read.message}
        console.print(msgspec.json.format(json_of(shown), indent=2).decode(), markup=False, soft_wrap=True)


def _show_check(console: Console, summary: Summary) -> None:
    console.print(
        f"All {counted(summary.rows, 'row')} checked: {summary.accepted:,} would be recorded, {summary.rejected:,} "
        "rejected. Which of them the store has already was not looked at.",
        highlight=False,
    )
    _show_problems(console, summary, "")


def _foretell(session: Session, plan: Plan, *, again: bool) -> None:
    """Say what the import would cause in the store, if there is one."""
    store = session.settings().store
    if "://" not in store and not Path(store).exists():
        return
    with session.engine(readonly=True) as engine:
        consequences, rows = foretell_file(engine, plan, again=again)
    if rows:
        show(session.console, consequences, f"Caused by {counted(rows, 'row')}")


def _show_problems(console: Console, summary: Summary, where: str) -> None:
    for problem in summary.problems:
        line = visible(f"  row {problem.row}: {problem.code}: {problem.message}")
        console.print(line, highlight=False, markup=False)
    more = summary.rejected + summary.conflicts - len(summary.problems)
    if more > 0:
        console.print(f"  … and {more:,} more{where}.", highlight=False)
    if summary.conflicts:
        console.print("Keys count for each source alone: give another file a `--source` of its own.", highlight=False)
    for column in sorted(summary.lacking or ()):
        line = visible(f"Warning: no row has the column {column!r}, so what it was to give is empty in all of them.")
        console.print(line, highlight=False, markup=False, style="yellow")


def _readable(event: Event) -> dict[str, Any]:
    return {
        "type": event.type,
        "occurred_at": format_time(event.occurred_at),
        "key": event.key,
        "identifiers": {i.kind: i.value for i in event.identifiers},
        "properties": event.properties,
    }


def _show(console: Console, summary: Summary, seconds: float) -> None:
    if summary.skipped:
        console.print(f"{counted(summary.skipped, 'row was', 'rows were')} settled by an earlier run.", highlight=False)
    rate = summary.rows / max(seconds, 1e-9)
    console.print(
        f"{counted(summary.rows, 'row')} in {seconds:.1f} s ({rate:,.0f} rows/s): {summary.accepted:,} accepted, "
        f"{summary.duplicates:,} known already, {summary.conflicts:,} in conflict, {summary.rejected:,} rejected.",
        highlight=False,
    )
    _show_problems(console, summary, "; `threadline rejected list` lists them")


__all__ = ["command", "declared_mapping"]
