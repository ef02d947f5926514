"""Processes of the tests that work on a store until they are killed.

They are forked from one that has imported everything and has no store open: a start of Python for each would take
most of the time. ``python -m tests.surfaces.killed_worker MODULE ARGUMENT…`` forks one for each line that it reads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path

from tests import forked
from threadline.app import open_engine

ROOT = Path(__file__).parents[2]


@contextmanager
def workers(module: str, *arguments: object) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """What starts a worker, one at a time: ``main`` of a module, from when it is ready until it is killed."""
    command = [forked.python(), "-m", __name__, module, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True, bufsize=1)
    assert process.stdin is not None
    assert process.stdout is not None
    lines, asked = process.stdout, process.stdin

    @contextmanager
    def working() -> Iterator[None]:
        asked.write("next\n")
        pid = int(lines.readline())
        try:
            assert lines.readline() == "ready\n"
            yield
        finally:
            os.kill(pid, signal.SIGKILL)
            assert lines.readline() == f"ended by {-signal.SIGKILL}\n"

    try:
        yield working
    finally:
        process.kill()
        process.communicate()


def _fork(module: str, arguments: list[str]) -> None:
    main = import_module(module).main
    open_engine("memory:").close()  # what it imports only then is imported now
    for _ in sys.stdin:
        # The child says that it is ready only once it has read that its number is out.
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(writing)
            os.read(reading, 1)
            main(*arguments)
            os._exit(0)
        os.close(reading)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        os.close(writing)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"ended by {os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _fork(sys.argv[1], sys.argv[2:])
