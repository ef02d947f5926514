"""The command line: `threadline`, with one command for each operation and those that run and look after a store."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 if it did what was asked, 1 if it could not, 2 for what it does not understand."""
    # Nothing else is imported before it is needed: `threadline --help` must answer at once. The composition root is
    # above every surface; a program has to begin somewhere, and this is the one place that reaches up.
    from threadline.app import composition
    from threadline.surfaces.cli.program import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a sign must not stop an answer
    sys.exit(run(composition(), sys.argv[1:] if arguments is None else arguments))
