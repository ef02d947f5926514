"""``threadline refold`` and ``verify``: what is derived, derived again or compared with the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from threadline.engine.engine import Engine
from threadline.engine.maintenance.rebuild import Parts, refold_everybody
from threadline.engine.maintenance.verification import Progress as OnProgress
from threadline.engine.maintenance.verification import unchecked_items
from threadline.engine.maintenance.verification import verify as check
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidSetting
from threadline.surfaces.cli.printing import visible
from threadline.surfaces.cli.session import Session, own_store_option

SHOWN_MAX = 20
"""Faults of a kind that are listed; all of them are counted."""


@click.command()
@own_store_option
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that share the work.")
@click.pass_obj
def refold(session: Session, jobs: int) -> None:
    """Recalculate every person's data from the log, and write what differs.

    You seldom need it: after a change of definitions, a person is recalculated when next read or written, and
    `threadline apply` recalculates everyone.
    """
    began = time.monotonic()
    settings = session.settings()
    if "://" not in settings.store and not Path(settings.store).exists():
        raise InvalidSetting(f"there is no store at {settings.store}")
    with session.engine() as engine, counter(session.console, "people refolded") as count:
        done = refold_everybody(
            engine.store, engine.catalogue, jobs=jobs, opener=partial(_parts, session.opener()), progress=count
        )
    seconds = time.monotonic() - began
    session.console.print(
        f"{counted(done.people, 'person')} refolded from {counted(done.events, 'event')} in {seconds:.1f} s "
        f"({done.events / max(seconds, 1e-9):,.0f} events/s); {done.written:,} had changed.",
        highlight=False,
    )
    if mended := [fault for fault in done.rows_amiss if fault.can_be_mended]:
        names = ", ".join(sorted({fault.projection or "threads" for fault in mended}))
        session.console.print(f"Index rows of {names} were amiss, and are written anew.", highlight=False)
    _list(session.console, "row", "red", [row.problem for row in done.rows_amiss if not row.can_be_mended])
    _list(session.console, "person", "red", done.unreadable)
    if done.unreadable:
        raise click.exceptions.Exit(1)


def _parts(opener: Callable[[], Engine]) -> Parts:
    engine = opener()
    return engine.store, engine.catalogue


@click.command()
@own_store_option
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that share the work.")
@click.pass_obj
def verify(session: Session, jobs: int) -> None:
    """Check the store, every event, people and decisions. Changes nothing; exits 1 if there is a fault.

    Every event must be as it was written. Every person's data must equal what their events give. Tags, groups, segments
    and leaderboards must list the people who belong there, and each identifier must lead to its person. Every decision
    must follow from the values that it has read. Damaged events are listed, and everything that does not depend on them
    is checked as well.
    """
    console = session.console
    with session.engine(readonly=True) as engine, _counters(console) as progress:
        if stale := engine.maintenance.stale():
            changed = f"definitions have changed since everybody was recalculated ({', '.join(stale)})"
            _tell(console, "note", "yellow", f"{changed}; run `threadline apply`, then verify again")
        note = unchecked_items(engine.store)
        result = check(engine, jobs=jobs, opener=partial(_parts, session.opener()), progress=progress)
    people = result.people
    if note:
        _tell(console, "note", "yellow", note)
    _list(console, "file", "red", result.faults)
    _list(console, "event", "red", [str(damage.error) for damage in result.damaged])
    _list(console, "breach", "red", result.breaches)
    _list(console, "person", "red", people.unreadable)
    differing = [id for id in people.differing if id not in people.stale]
    _list(console, "person", "yellow", [f"{id} differs from a fold of the log" for id in differing])
    _list(console, "row", "red", [row.problem for row in people.rows_amiss])
    console.print(
        f"{counted(people.people, 'person')} with {counted(result.events, 'event')} verified: "
        f"{counted(len(result.faults), 'fault')} of the file, "
        f"{counted(len(result.damaged), 'damaged event')}, "
        f"{counted(len(people.unreadable) + len(people.differing), 'person who differs', 'people who differ')}, "
        f"{counted(len(people.rows_amiss), 'index row', 'index rows')} amiss, "
        f"{counted(len(result.breaches), 'breach')}.",
        highlight=False,
    )
    if result.damaged:
        console.print("`threadline repair --from BACKUP` puts good copies in the place of damaged events.")
    if people.stale:
        many = counted(len(people.stale), "person has", "people have")
        console.print(f"{many} states of other definitions; `threadline apply` derives them anew.", highlight=False)
    if differing:
        console.print("`threadline refold` derives anew those whose states differ.")
    if any(row.can_be_mended for row in people.rows_amiss):
        console.print("`threadline refold` writes index rows anew that are amiss.")
    if result.faults:
        click.echo("Put a backup that is whole in its place with `threadline restore --replace`.", err=True)
    if not result.is_whole:
        raise click.exceptions.Exit(1)


def _list(console: Console, what: str, style: str, faults: Sequence[str]) -> None:
    for fault in faults[:SHOWN_MAX]:
        _tell(console, what, style, fault)


def _tell(console: Console, what: str, style: str, fault: str) -> None:
    console.print(Text.assemble((what.ljust(8), style), visible(fault)))


@contextmanager
def _counters(console: Console) -> Iterator[OnProgress]:
    """A counter for each thing that is verified, one after the other."""
    with ExitStack() as shown:
        counts: dict[str, Callable[[int], None]] = {}

        def note(what: str, count: int) -> None:
            if what not in counts:
                shown.close()  # a terminal shows one at a time
                counts[what] = shown.enter_context(counter(console, what))
            counts[what](count)

        yield note


@contextmanager
def counter(console: Console, what: str) -> Iterator[Callable[[int], None]]:
    """Something to tell of people done, which shows how many there were; on a terminal and nowhere else."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda people: progress.update(task, advance=people)
