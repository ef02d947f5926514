"""A process that works for this one and sends what it has done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.spawn import get_executable


def start(work: Callable[[Connection], None], *, duplex: bool = False) -> tuple[BaseProcess, Connection]:
    """Start ``work``, which must be picklable, in a process that ends with this one; what it sends can be received, and
    with ``duplex`` it can be sent something as well."""
    # Spawned, not forked: this process has threads and an open store, and a copy of neither would work.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex)
    process = context.Process(target=work, args=(theirs,), daemon=True)
    with _without_interrupts():
        process.start()
    # Our copy of its end must be closed, or its death would leave us waiting for ever.
    theirs.close()
    return process, ours


def start_module(module: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a program of ours in a process that is to end when its end of the pipe says so. Its first argument is the
    descriptor of that end.

    Unlike `start` it does not import the program that runs here, which may be anybody's script.
    """
    ours, theirs = multiprocessing.Pipe()
    # It finds modules where we do. Without -P a file in the folder in which it starts could stand in for one of them.
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    with theirs, _without_interrupts():
        process = subprocess.Popen(
            [get_executable(), "-P", "-m", module, str(theirs.fileno()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={**os.environ, "PYTHONPATH": path},
        )
    return process, ours


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started here is deaf to Ctrl-C, which reaches every process of a terminal: we end it, and say so once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
