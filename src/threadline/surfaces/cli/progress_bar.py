"""A bar for long work whose end is known, on stderr, so that what is printed can be piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from threadline.surfaces.cli.printing import terminal
from threadline.surfaces.composition import OnProgress


@contextmanager
def progress_bar(what: str) -> Iterator[OnProgress]:
    """Shows what is done of all; nothing where stderr is no terminal. A total of 0 is not known."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)
