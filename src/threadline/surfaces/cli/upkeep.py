"""``threadline refold`` and ``verify``: what is derived, derived again or compared with the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from threadline.engine.engine import Engine
from threadline.engine.refold import differs, refold_shard, write_refolded
from threadline.kernel.store import Item
from threadline.surfaces.cli.session import Session, store_option

WRITTEN_AT_ONCE = 500
SHOWN_MAX = 20
"""People that are listed by id; all of them are counted."""


@click.command()
@store_option
@click.pass_obj
def refold(session: Session) -> None:
    """Derive every person's states again from the log and write those that differ.

    Needed only to bring all people up to changed definitions at once: people are brought up to date one by one anyway
    when they are next read or written.
    """
    began = time.monotonic()
    people = events = written = 0
    waiting: list[tuple[Item, bytes]] = []
    with session.engine() as engine, _counter(session.console, "people refolded") as count:
        for item, fresh, folded in refold_shard(engine.store, engine.catalogue):
            people, events = people + 1, events + folded
            if differs(item.value, fresh):
                waiting.append((item, fresh))
            if len(waiting) == WRITTEN_AT_ONCE:
                written += _write(engine, waiting)
            count()
        written += _write(engine, waiting)
    seconds = time.monotonic() - began
    session.console.print(
        f"{people:,} people refolded from {events:,} events in {seconds:.1f} s "
        f"({events / max(seconds, 1e-9):,.0f} events/s); {written:,} had changed.",
        highlight=False,
    )


def _write(engine: Engine, waiting: list[tuple[Item, bytes]]) -> int:
    changed = write_refolded(engine.store, waiting)
    written = len(waiting) - len(changed)
    waiting.clear()
    return written


@click.command()
@store_option
@click.pass_obj
def verify(session: Session) -> None:
    """Check the file, and that every person's states equal a fold of the log. Writes nothing; exits 1 for any fault."""
    people = events = 0
    differing: list[str] = []
    with session.engine(readonly=True) as engine:
        faults: list[str] = getattr(engine.store, "integrity", list)()
        with _counter(session.console, "people verified") as count:
            for item, fresh, folded in refold_shard(engine.store, engine.catalogue):
                people, events = people + 1, events + folded
                if differs(item.value, fresh):
                    differing.append(item.key.partition)
                count()
    for fault in faults:
        session.console.print(f"[red]file[/]    {fault}", highlight=False)
    for id in differing[:SHOWN_MAX]:
        session.console.print(f"[yellow]person[/]  {id} differs from a fold of the log", highlight=False)
    session.console.print(
        f"{people:,} people with {events:,} events verified: "
        f"{len(faults)} faults of the file, {len(differing):,} people who differ.",
        highlight=False,
    )
    if differing:
        session.console.print(
            "Definitions that changed make people differ; `threadline refold` brings them up to date."
        )
    if faults or differing:
        raise click.exceptions.Exit(1)


@contextmanager
def _counter(console: Console, what: str) -> Iterator[Callable[[], None]]:
    """Something to call for each person, which shows how many there were; on a terminal and nowhere else."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda: progress.update(task, advance=1)
