"""``threadline people erase``, and ``threadline erasures``: resume, export and apply."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from threadline.capabilities.operate.erasure.operations import EraseParams, ErasureParams, ErasureView
from threadline.capabilities.operate.erasure.operations import erase as erase_operation
from threadline.capabilities.operate.erasure.operations import show as show_operation
from threadline.engine.erasure.applying import apply as apply_entries
from threadline.engine.erasure.applying import entries_of
from threadline.engine.erasure.certificates_file import LedgerFile
from threadline.kernel.counted import counted
from threadline.kernel.erasure import Erasure
from threadline.surfaces.cli.printing import answer, terminal
from threadline.surfaces.cli.session import (
    Session,
    json_option,
    own_store_option,
    store_option,
    url_option,
    workspace_option,
)

LOOK_SECONDS = 0.2


@click.command("erase")
@click.argument("id")
@click.option("--reason", default="", help="Why; it stays in the certificate, so it should name nobody.")
@click.option("--request", default="", help="Names this call, so that repeating it changes nothing.")
@click.option("--dry-run", is_flag=True, help="Only count what would be removed, and what would stay.")
@click.option("--yes", is_flag=True, help="Do not ask before it is done.")
@json_option
@store_option
@workspace_option
@url_option
@click.pass_obj
def erase(session: Session, /, id: str, reason: str, request: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase a person for good: events, everything that follows from them, and what waits to be sent to them.

    ID: A person's id, a user id, or kind:value such as email:ada@example.com. The certificate of it stays.
    """
    if dry_run or not yes:
        counts = session.run(erase_operation, EraseParams(id=id, dry_run=True))
        answer(counts, session.console, as_json=as_json)
        if dry_run:
            return
        events = counted(counts.removed.get("events", 0), "event")
        click.confirm(f"Erase this person with {events} for good? Nobody can bring it back", abort=True, err=True)
    with _bar() as show:
        done = session.run(erase_operation, EraseParams(id=id, reason=reason, request=request))
        erasure = _awaited(session, done.erasure, show)
    answer(erasure, session.console, as_json=as_json)
    for copy in _copies(session):
        click.echo(f"{copy} may still have this person: delete it when it is not needed any more.", err=True)


def _copies(session: Session) -> list[Path]:
    """Files beside an embedded store that were set aside, and are nobody's to look into but the operator's."""
    store = session.settings().store
    if session.client() is not None or "://" in store:
        return []
    path = Path(store)
    patterns = (f"{path.name}.replaced-*", f"{path.name}.rescued-*", f"{path.name}-wal.lost-*")
    return sorted(file for pattern in patterns for file in path.parent.glob(pattern))


def _awaited(session: Session, id: str, show: Any) -> ErasureView:
    """The erasure once it is done: by a server's job, or here."""
    while True:
        erasure: ErasureView = session.run(show_operation, ErasureParams(id=id))
        if erasure.state == "done":
            return erasure
        if session.client() is None:
            with session.engine() as engine:
                engine.erasures.run(session.settings().workspace, id, show)
        else:
            show(erasure)
            time.sleep(LOOK_SECONDS)


@click.command("resume")
@own_store_option
@click.pass_obj
def resume(session: Session) -> None:
    """Finish every erasure that was interrupted. A server does so by itself."""
    with session.engine() as engine, _bar() as show:
        unfinished = engine.erasures.unfinished()
        for workspace, id in unfinished:
            engine.erasures.run(workspace, id, show)
    session.console.print(f"{counted(len(unfinished), 'erasure')} finished.", highlight=False)


@click.command("export")
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@own_store_option
@click.pass_obj
def export(session: Session, target: Path) -> None:
    """Add the ledger of erasures to FILE, in the form of the file beside an embedded store.

    Keep FILE apart from backups. `threadline erasures apply` erases these people again in a restored store.
    """
    with session.engine(readonly=True) as engine:
        keys, entries = entries_of(engine.store)
        LedgerFile(target).add(keys, entries)
    session.console.print(f"{target}: {counted(len(entries), 'erasure')}.", highlight=False, markup=False)


@click.command("apply")
@click.argument("source", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@own_store_option
@click.pass_obj
def apply(session: Session, source: Path) -> None:
    """Repeat the erasures in FILE in this store: after a backup was restored, and before a server uses it."""
    keys, entries = LedgerFile(source).read()
    with session.engine() as engine:
        done = apply_entries(engine, engine.erasures, keys, entries)
    session.console.print(f"{counted(done, 'erasure')} done again.", highlight=False)


@contextmanager
def _bar() -> Iterator[Any]:
    """On stderr, so that what is printed can be piped."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    console = terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Erasing", total=None)

        def show(erasure: Erasure | ErasureView) -> None:
            bar.update(task, completed=erasure.events, total=erasure.events_total)

        yield show
