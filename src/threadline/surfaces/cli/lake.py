"""``threadline lake``: every event in Parquet files; what is new, how far it has come, whether it is whole."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from threadline.engine.engine import Engine
from threadline.kernel.counted import counted
from threadline.kernel.errors import Unavailable
from threadline.kernel.time import format_time
from threadline.surfaces.cli.printing import answer, json_of
from threadline.surfaces.cli.progress_bar import progress_bar
from threadline.surfaces.cli.session import Session, json_option, lake_option, own_store_option
from threadline.surfaces.composition import LakeDoor
from threadline.surfaces.log_lines import log_lines
from threadline.surfaces.worker_process import at_hang_up

COMPACTION_SECONDS = 3_600.0
"""Between two compactions of a sync that goes on, at most."""
COMPACTION_FILES = 2_000
"""New files after which it compacts before: the manifest names them all, and every sync writes it."""

log = logging.getLogger("threadline.lake")


@click.command()
@click.option("--watch", metavar="SECONDS", type=click.FloatRange(min=0.1), help="Go on, with pauses of this length.")
@click.option("--limit", metavar="NUMBER", type=click.IntRange(min=1), help="Stop after so many entries of the log.")
@lake_option
@json_option
@own_store_option
@click.pass_obj
def sync(session: Session, watch: float | None, limit: int | None, as_json: bool) -> None:
    """Write every event into the lake that is not in it, and take out what was erased.

    It reads the store beside a server, may be stopped or killed at any time, and goes on where it was.
    """
    lake = session.composition.lake(session.settings())
    if watch is not None:
        _watch(session, lake, watch)
        return
    with session.engine(readonly=True) as engine, progress_bar("Writing") as on_progress:
        done = lake.sync(engine, limit, on_progress)
    if as_json:
        click.echo(json_of(done))
        return
    text = f"{counted(done['events'], 'event')} in {counted(done['files'], 'file')}, {done['bytes']:,} bytes"
    erased = f"; {counted(done['erased'], 'erased event')} taken out" if done["erased"] else ""
    compacted = f"; {counted(done['compacted'], 'file')} put together" if done["compacted"] else ""
    reached = counted(done["position"], "entry of the log", "entries of the log")
    session.console.print(f"{text}{erased}{compacted}. The lake has {reached}.", highlight=False)


def _watch(session: Session, lake: LakeDoor, seconds: float) -> None:
    log_lines()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    at_hang_up(lambda *_: stopping.set())
    compacted_at, files = time.monotonic(), 0
    with session.engine(readonly=True) as engine:
        while not stopping.is_set():
            try:
                done = lake.sync(engine, None)
                if done["events"] or done["erased"]:
                    log.info("the lake has %d more events, up to position %d", done["events"], done["position"])
                files += done["files"]
                if files >= COMPACTION_FILES or (files and time.monotonic() - compacted_at >= COMPACTION_SECONDS):
                    lake.compact(engine)
                    compacted_at, files = time.monotonic(), 0
            except Unavailable as error:  # such as a full disk: nothing is lost, and the next attempt goes on
                log.warning("the lake cannot be written now: %s; %s", error, error.hint)
            stopping.wait(seconds)


@click.command()
@lake_option
@json_option
@own_store_option
@click.pass_obj
def status(session: Session, as_json: bool) -> None:
    """Show how far the lake has come, and how far it is behind the log."""
    progress = _run(session, lambda lake, engine: lake.status(engine))
    shown = {**progress, "recorded_at": format_time(progress["recorded_at"]) if progress["recorded_at"] else ""}
    answer(shown, session.console, as_json=as_json)


@click.command()
@lake_option
@json_option
@own_store_option
@click.pass_obj
def compact(session: Session, as_json: bool) -> None:
    """Put small files of a day and a type of event together. What they replace is removed an hour later."""
    done = _run(session, lambda lake, engine: lake.compact(engine))
    if as_json:
        click.echo(json_of(done))
    else:
        text = f"{counted(done['before'], 'file')} are {done['after']:,} now."
        session.console.print(text, highlight=False)


@click.command()
@lake_option
@json_option
@own_store_option
@click.pass_obj
def verify(session: Session, as_json: bool) -> None:
    """Compare every file with the manifest, and every row with the log; exits 1 if anything differs."""
    result = _run(session, lambda lake, engine: lake.verify(engine))
    if as_json:
        click.echo(json_of(result))
    else:
        for problem in result["problems"]:
            click.echo(problem)
        text = f"{counted(result['events'], 'event')} of the log, {counted(result['rows'], 'row')} in "
        end = "equal." if not result["problems"] else "not equal."
        session.console.print(f"{text}{counted(result['files'], 'file')}: {end}", highlight=False)
    if result["problems"]:
        raise click.exceptions.Exit(1)


def _run(session: Session, what: Callable[[LakeDoor, Engine], Mapping[str, Any]]) -> Mapping[str, Any]:
    lake = session.composition.lake(session.settings())
    with session.engine(readonly=True) as engine:
        return what(lake, engine)
