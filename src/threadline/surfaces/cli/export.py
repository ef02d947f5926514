"""``threadline people export``: everything that is stored about a person in one file, which only its owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from threadline.kernel.errors import Conflict, Unavailable
from threadline.kernel.operation import Operation
from threadline.kernel.personal import Copy
from threadline.surfaces.cli.printing import terminal
from threadline.surfaces.cli.session import Session, store_option, url_option, workspace_option
from threadline.surfaces.operation_calls import convert, run
from threadline.surfaces.python.call import call_of


@click.command()
@click.argument("person", metavar="PERSON")
@click.argument("into", metavar="OUT.zip", type=click.Path(dir_okay=False, path_type=Path))
@store_option
@workspace_option
@url_option
@click.pass_obj
def export(session: Session, person: str, into: Path) -> None:
    """Write everything that is stored about PERSON into OUT.zip: JSON Lines for programs, and a page to read.

    PERSON is a user id, an identifier such as email:ada@example.com, or a person's id. The file is readable by its
    owner only. One that is there already is not overwritten.
    """
    with _new_file(into) as file, _bar() as advance:
        for piece in _pieces(session, person):
            file.write(piece)
            advance(len(piece))
        size = file.tell()
    session.console.print(f"{into}: {size:,} bytes.", highlight=False, markup=False)


def _pieces(session: Session, person: str) -> Iterator[bytes]:
    """The archive as it comes from the server or from the store."""
    operation: Operation = next(
        candidate for candidate in session.composition.operations() if candidate.name == "people_export"
    )
    params: Any = convert(operation, {"id": person}, strict=False)
    client = session.client()
    if client is not None:
        with client:
            yield from client.pieces(call_of(operation), {"id": person})
        return
    with session.engine(readonly=True) as engine:
        yield from run(engine.catalogue.operation(operation.name), session.context(engine), params)


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name once it is whole. Raises `Conflict` where there is one of that name."""
    if path.exists():
        raise _there(path)
    partial = path.with_name(f"{path.name}.partial")
    try:
        # Of nobody else, from the first byte on.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Conflict(
            f"{partial} is there already: an export that goes on, or was stopped",
            hint="Remove it once no export goes on.",
        ) from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _name(partial, path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def _name(partial: Path, path: Path) -> None:
    """Give a whole file its name. Raises `Conflict` if somebody has put another one there meanwhile."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise _there(path) from None
    except OSError:
        # Some file systems have no links. A rename replaces what is there, so that is looked for first.
        if path.exists():
            raise _there(path) from None
        partial.rename(path)


def _there(path: Path) -> Conflict:
    return Conflict(f"{path} is there already", hint="Name another file, or move that one away.")


@contextmanager
def _bar() -> Iterator[Any]:
    """On stderr, so that what is printed can be piped."""
    console = terminal(stderr=True)
    columns = (TextColumn("{task.description}"), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Exporting", total=None)
        yield lambda size: progress.advance(task, size)


COPY = Copy("files that commands write", why="whoever ran the command has them, such as an archive or a checkpoint")
