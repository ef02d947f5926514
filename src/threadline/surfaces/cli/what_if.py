"""``threadline what-if run``: a rule or definitions tried on history beside a running server, with a bar, resumable."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from threadline.capabilities.decide.whatif.job import save
from threadline.capabilities.decide.whatif.operations import runs
from threadline.capabilities.decide.whatif.simulation import SAMPLES_MAX, Asked, Checkpoint, Simulation, prepare
from threadline.capabilities.decide.whatif.views import WhatIfView, view
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidValue
from threadline.kernel.store import Key
from threadline.surfaces.cli.printing import json_of, terminal, visible
from threadline.surfaces.cli.session import Session, json_option, store_option, url_option, workspace_option
from threadline.surfaces.python.call import call_of

if TYPE_CHECKING:
    from threadline.surfaces.python.client import Client

INTERRUPTED = 130
LOOK_SECONDS = 0.2
Command = TypeVar("Command", bound=Callable[..., Any])


def trial_options(command: Command) -> Command:
    """The options that every what-if has: which history, and what becomes of the result."""
    options = (
        click.option("--since", metavar="DURATION", help="Start this long before the end, such as 90d."),
        click.option("--start", metavar="TIME", help="From the events that became known at this instant on."),
        click.option("--stop", metavar="TIME", help="Up to this instant; without it up to now."),
        click.option("--people", metavar="PERSON", multiple=True, help="Only this person. May be repeated."),
        click.option("--types", metavar="TYPE", multiple=True, help="Only this event type. May be repeated."),
        click.option(
            "--historical",
            type=click.Choice(["all", "by_set"]),
            default="all",
            show_default=True,
            help="Ask about all historical events, or as live only where a rule set says so.",
        ),
        click.option(
            "--samples",
            type=click.IntRange(0, SAMPLES_MAX),
            default=20,
            show_default=True,
            help="People who are shown with their first difference.",
        ),
        click.option(
            "--changed-max",
            type=click.FloatRange(0, 1),
            help="Exit with 1 for errors, or if a larger share of the answers changed.",
        ),
        click.option("--save", is_flag=True, help="Save the result in the store, where an activation can require it."),
        click.option("--note", default="", help="What it is for; saved with the result."),
        click.option(
            "--checkpoint",
            type=click.Path(dir_okay=False, path_type=Path),
            help="A file for the progress; if it exists, the command continues from there.",
        ),
        json_option,
        store_option,
        workspace_option,
        url_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("run")
@click.option("--rule", help="Try a rule: its --version, or a --content that is not written yet.")
@click.option("--version", type=click.IntRange(1), help="The version of the rule.")
@click.option(
    "--content", type=click.File("rb"), help="A file with the content of the rule, as JSON; - is standard input."
)
@click.option("--against", type=click.IntRange(1), help="Compare with this version, and not with what is in force.")
@click.option("--definitions", type=click.File("r"), help="Try a file of definitions, section by section.")
@click.option("--baseline", type=click.Choice(["reckoned", "recorded"]), help="Compare with what was recorded then.")
@trial_options
@click.pass_obj
def what_if(session: Session, /, **given: Any) -> None:
    """Try a rule or definitions on history, in a sandbox, and show what would have been different.

    It reads beside a running server, and writes nothing unless --save keeps the result. Interrupt it and it ends after
    the people it is at; with --checkpoint it goes on there when it is run again.
    """
    if given["content"] is not None:
        given["content"] = msgspec.json.decode(given["content"].read())
    if given["definitions"] is not None:
        given["file"], given["definitions"] = given["definitions"].name, given["definitions"].read()
    try_out(session, given)


def try_out(session: Session, given: dict[str, Any]) -> None:
    """Run a what-if to its end, or until it is interrupted, and print what came of it."""
    names = {name: given[name] for name in Asked.__struct_fields__ if given.get(name) not in (None, (), "")}
    try:
        asked = msgspec.convert(names, Asked, strict=False)
    except msgspec.ValidationError as error:
        raise click.UsageError(str(error)) from None
    client = session.client()
    result = _here(session, asked, given) if client is None else _there(client, asked, given)
    if given["as_json"]:
        click.echo(json_of(result))
    else:
        print_what_if(session.console, result)
    share = result.changed / max(result.decisions, 1)
    if given["changed_max"] is not None and (result.errors or result.failed or share > given["changed_max"]):
        raise click.exceptions.Exit(1)


def _here(session: Session, asked: Asked, given: dict[str, Any]) -> WhatIfView:
    with session.engine(readonly=not given["save"]) as engine:
        context = session.context(engine)
        shown = _run(engine, context, asked, given["checkpoint"])
        if shown is None:
            raise click.exceptions.Exit(INTERRUPTED)
        simulation, result = shown
        if given["save"]:
            save(context, simulation, given["note"])
            result.saved = True
    return result


def _there(client: Client, asked: Asked, given: dict[str, Any]) -> WhatIfView:
    """The same by a server, which goes on with it when this ends."""
    if given["checkpoint"] is not None:
        raise click.UsageError("--checkpoint is for a store that is opened here; a server resumes a what-if by its id")
    with client:
        values = {**msgspec.to_builtins(asked), "save": given["save"], "note": given["note"]}
        result: WhatIfView = client.call(call_of(runs.run), values)
        while result.state == "running":
            time.sleep(LOOK_SECONDS)
            result = client.what_if.status(result.id)
    if result.state != "done":
        raise InvalidValue(f"what-if {result.id} is {result.state}{f': {result.problem}' if result.problem else ''}")
    return result


def _run(engine: Engine, context: Context, asked: Asked, file: Path | None) -> tuple[Simulation, WhatIfView] | None:
    checkpoint = _read(file)
    simulation = prepare(context, asked, checkpoint)
    people, events = (0, 0) if checkpoint is None else (checkpoint.people, checkpoint.events)
    after = None if checkpoint is None or checkpoint.after is None else Key(*checkpoint.after)
    with _interruptible() as interrupted, _bar(engine, events) as advance:
        for done in simulation.pages(after):
            people += done.people
            events += done.events
            advance(done.events)
            if file is not None and done.after is not None:
                _write(file, simulation.checkpoint(done.after, people, events))
            if interrupted and done.after is not None:
                return None
    if file is not None:
        file.unlink(missing_ok=True)
    return simulation, view(simulation, "done", people, events)


def _read(file: Path | None) -> Checkpoint | None:
    if file is None or not file.exists():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=Checkpoint)
    except msgspec.DecodeError as error:
        raise InvalidValue(f"{file} is not a checkpoint of a what-if: {error}") from None


def _write(file: Path, checkpoint: Checkpoint) -> None:
    beside = file.with_name(f"{file.name}.new")
    beside.write_bytes(msgspec.json.encode(checkpoint))
    beside.replace(file)  # a crash leaves the old file or the new one, never half of one


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """A list that is no longer empty after the first signal to end; the second one ends at once."""
    signals: list[int] = []

    def note(number: int, frame: Any) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _bar(engine: Engine, done: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, of events: how many there are in all the store may know."""
    stats = engine.store.stats()
    columns = (TextColumn("events"), BarColumn(), TaskProgressColumn(), TextColumn("{task.completed:,.0f}"))
    console = terminal(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=stats.get("log_entries"), completed=done)
        yield lambda events: progress.update(task, advance=events)


# --- what came of it --------------------------------------------------------------------------


def print_what_if(console: Console, result: WhatIfView) -> None:
    """Print a result: the diff of what is tried, the counts, and whom it changes."""
    for line in result.diff:
        style = (
            "green" if line.startswith("+") else "red" if line.startswith("-") else "cyan" if line[:2] == "@@" else ""
        )
        console.print(visible(line), style=style, highlight=False, markup=False, soft_wrap=True)
    if result.diff:
        console.print()
    asked = sum(result.asked_of.values())
    share = result.changed / max(result.decisions, 1)
    console.print(
        f"{result.new}, against {result.old}\n{_start(result.start)} to {result.stop[:19]}Z: "
        f"{counted(result.people, 'person')}, {counted(asked, 'event')} asked about\n"
        f"{result.changed:,} of {counted(result.decisions, 'answer')} changed ({share:.2%}), for "
        f"{counted(result.people_changed, 'person')}; {counted(result.errors, 'error')}, "
        f"{counted(result.failed, 'person')} failed",
        highlight=False,
        markup=False,
    )
    if result.historical_events:
        done, other = ("counted", "by_set") if result.historical == "all" else ("left out", "all")
        events = counted(result.historical_events, "historical event")
        text = f"{done}: {events} of rule sets with `existing: false`; see --historical {other}"
        console.print(text, highlight=False, markup=False)
    for table in _tables(result):
        console.print()
        console.print(table)
    if result.points is not None:
        points = result.points
        console.print(
            f"\npoints of {counted(points.people, 'person')}: {points.earned:+,} earned, {points.balance:+,} balance"
        )
    if result.cut:
        console.print(f"\n{counted(result.cut, 'event')} led to more than is allowed; the rest of it was left out")
    for person, problem in result.failures.items():
        console.print(Text.assemble(("failed", "red"), "  ", visible(f"{person}: {problem}")))


def _start(start: str) -> str:
    return "from the first event" if start.startswith("0001") else f"{start[:19]}Z"


def _tables(result: WhatIfView) -> Iterator[Table]:
    changed = [cell for cell in result.matrix if cell.changed]
    if changed:
        yield _table(("old", "new", "answers"), [(cell.old, cell.new, f"{cell.changed:,}") for cell in changed])
    rules = [rule for rule in result.rules if rule.changed or rule.errors]
    if rules:
        yield _table(
            ("rule", "asked", "changed", "people", "errors"),
            [(rule.rule, *(f"{n:,}" for n in (rule.asked, rule.changed, rule.people, rule.errors))) for rule in rules],
        )
    if result.segments:
        rows = [(segment.segment, f"{segment.entered:,}", f"{segment.left:,}") for segment in result.segments]
        yield _table(("segment", "entered", "left"), rows)
    if result.samples:
        yield _table(
            ("person", "at", "event", "rule", "old", "new", "because"),
            [
                (s.person, s.at[:19], s.type, s.rule, s.old["status"], s.new["status"], _why(s.step))
                for s in result.samples
            ],
        )


def _table(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for index, name in enumerate(names):
        number = all(row[index].replace(",", "").isdigit() for row in rows)
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def _why(step: dict[str, Any] | None) -> str:
    """The step at which the variants differ, in a line."""
    steps = [side for side in (step or {}).values() if side is not None]
    if not steps:
        return ""
    actual, expected = (" → ".join(dict.fromkeys(str(side[name]) for side in steps)) for name in ("actual", "expected"))
    return f"{steps[-1]['field']} {actual} {steps[-1]['operator']} {expected}"
