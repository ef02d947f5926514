"""``threadline move``: everything from one store into another, verified, beside a running server if need be."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from threadline.engine.maintenance.move import Move
from threadline.engine.maintenance.move import Progress as OnProgress
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidSetting, StoreFull
from threadline.kernel.store import Store
from threadline.settings import Settings, load, without_secret
from threadline.surfaces.cli.printing import terminal
from threadline.surfaces.cli.session import Session

LEVEL_SECONDS = 60.0


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--follow", is_flag=True, help="Keep up with a source that is being written to, until stopped.")
@click.option(
    "--level-seconds",
    type=click.FloatRange(min=0.1),
    default=LEVEL_SECONDS,
    show_default=True,
    help="With --follow: how often all items are compared. New events follow at once.",
)
@click.pass_obj
def move(session: Session, source: str, target: str, follow: bool, level_seconds: float) -> None:
    """Move everything FROM one store TO another, which must be empty, and verify that both hold the same.

    Name each store by a path, or by a URL as in THREADLINE_STORE. The source is not changed. After an interruption run
    the command again: it continues where it stopped.

    To move with little downtime: run it with --follow beside the server, stop the server, run it without --follow,
    then start the server on the new store. Start nothing on the new store before that: it would send what is due.
    """
    settings, into = _settings(session, source), _settings(session, target)
    if "memory:" in (settings.store, into.store) or _name(settings) == _name(into):
        names = f"{without_secret(source)} cannot be moved to {without_secret(target)}"
        raise InvalidSetting(f"{names}: name two stores, neither of them in memory")
    if "://" not in settings.store and not Path(settings.store).exists():
        raise InvalidSetting(f"there is no store at {settings.store}")
    # Definitions are read first: a mistake in them must not create a store.
    catalogue = session.composition.in_force(settings)
    with (
        closing(session.composition.open_store(settings, follow)) as old,
        closing(session.composition.open_store(into, False)) as new,
        _bar(old) as progress,
    ):
        moved = None
        try:
            begun = Move(old, new, catalogue, _name(settings), progress)
            if follow:
                begun.follow(_stopped(), time.monotonic, level_seconds=level_seconds)
            else:
                moved = begun.run()
        except StoreFull as error:
            hint = "Free space there, and run this again: it goes on from where it was."
            raise StoreFull(str(error), hint=hint) from None
    if moved is None:
        session.console.print("Stopped. Stop what writes to the source, then run this without --follow.")
        return
    session.console.print(
        f"{counted(moved.events, 'event')} and {counted(moved.items, 'item')} moved; both stores have the same "
        f"canonical dump ({counted(moved.dump.number, 'line')}, fingerprint {moved.dump}) at position "
        f"{moved.cursor or 'of an empty log'}.",
        highlight=False,
    )


def _settings(session: Session, store: str) -> Settings:
    """Those in force, for this store, without a cache: what passes it by here would not be told to it."""
    return load({"store": store, "cache": ""}, onto=session.settings())


def _name(settings: Settings) -> str:
    """What the source is called where a move is resumed: the same, however it was written."""
    return without_secret(settings.store) if "://" in settings.store else str(Path(settings.store).resolve())


def _stopped() -> threading.Event:
    """Set when we are told to end; what is being copied then is finished, so that nothing is half done."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


@contextmanager
def _bar(source: Store) -> Iterator[OnProgress]:
    """A bar on stderr for each thing that is done; how many there are in all is known of events only."""
    stats = source.stats()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.completed:,.0f}"))
    shown, console = (*columns, TimeElapsedColumn()), terminal(stderr=True)
    with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=stats.get("log_entries") if what == "events" else None)
            progress.update(tasks[what], advance=done)

        yield advance
