"""Counts the calls of Threadline's functions while a command runs: ``python -m bench.profiled SOCKET COMMAND …``.

Whoever connects to the socket sends anything to begin, and again to end, and then receives a `Counted`.
"""

from __future__ import annotations

import runpy
import sys
import threading
from multiprocessing.connection import Listener
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import threadline

SOURCE = str(Path(threadline.__file__).parent)


class Counted(NamedTuple):
    """Calls of functions in Threadline's source. Each time that a generator or coroutine goes on is a call as well."""

    calls: int
    functions: int
    files: int
    returns: int
    """Calls into another file than the call before, which had been left earlier."""


class Counter:
    """A profile function that notes calls while it is ``on``."""

    def __init__(self) -> None:
        self.on = False
        self.calls: list[tuple[str, str]] = []
        """File and name of each, of all threads in the order in which they came."""

    def __call__(self, frame: FrameType, what: str, _: Any) -> None:
        """Note a call."""
        if self.on and what == "call" and frame.f_code.co_filename.startswith(SOURCE):
            self.calls.append((frame.f_code.co_filename, frame.f_code.co_name))

    def counted(self) -> Counted:
        """What was called since ``calls`` was cleared."""
        left: set[str] = set()
        last, returns = "", 0
        for file, _ in self.calls:
            if file != last:
                returns += file in left
                left.add(last)
                last = file
        return Counted(len(self.calls), len(set(self.calls)), len({file for file, _ in self.calls}), returns)


def _obey(counter: Counter, listener: Listener) -> None:
    with listener.accept() as control:
        while True:
            control.recv()
            counter.calls.clear()
            counter.on = True
            control.send(None)
            control.recv()
            counter.on = False
            control.send(tuple(counter.counted()))


def main() -> None:
    """Run the command line in this process with every thread counted."""
    _, socket, *command = sys.argv
    counter = Counter()
    threading.Thread(target=_obey, args=(counter, Listener(socket)), daemon=True).start()
    threading.setprofile(counter)
    sys.setprofile(counter)
    sys.argv = ["threadline", *command]
    runpy.run_module("threadline", run_name="__main__")


if __name__ == "__main__":
    main()
