"""The command line: `threadline`, with one command for each operation and those that run and look after a store."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadline.surfaces.composition import Composition

__all__ = ["main"]


class _StoppedError(BaseException):
    """A signal asks the process to end: what is half done is cleared away on the way out."""

    def __init__(self, number: int) -> None:
        self.number = number


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 if it did what was asked, 1 if it could not, 2 for what it does not understand."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a sign must not stop an answer
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has it ignored
            signal.signal(number, _end)
    try:
        given = sys.argv[1:] if arguments is None else arguments
        if list(given) == ["--version"]:
            from threadline.surfaces.version import package_version

            sys.stdout.write(f"threadline {package_version()}\n")
            sys.exit(0)
        # Nothing else is imported before it is needed: `threadline --help` must answer at once.
        from threadline.surfaces.cli.program import run

        with ExitStack() as command:
            code = run(partial(_composition, command), given)
    except KeyboardInterrupt:  # before anything was begun; later the program itself sees to it
        code = 130
    except _StoppedError as stopped:
        with suppress(OSError, AttributeError):  # the output may be closed, and was perhaps never open
            sys.stdout.flush()
        signal.signal(stopped.number, signal.SIG_DFL)
        os.kill(os.getpid(), stopped.number)  # whoever sent it must see that it was obeyed
        code = 128 + stopped.number
    sys.exit(code)


def _composition(command: ExitStack) -> Composition:
    """What opens engines, for what is left of a command. The composition root is above every surface; a program has to
    begin somewhere, and this is the one place that reaches up."""
    # What modules make stays: the collector would look through all of it again and again, a seventh of the start.
    gc.disable()
    from threadline.app import composition
    from threadline.engine.interpreter import gc_deferred

    made = composition()
    gc.freeze()
    gc.enable()
    command.enter_context(gc_deferred())  # the process is this command's own
    return made


def _end(number: int, frame: FrameType | None) -> None:
    raise _StoppedError(number)
