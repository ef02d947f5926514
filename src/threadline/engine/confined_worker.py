"""The program that does confined work: ``python -m threadline.engine.confined_worker DESCRIPTOR SECONDS BYTES``.

It imports little, so that it starts in a fraction of a second. See `threadline.engine.confined_process`.
"""

from __future__ import annotations

import pickle
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

IDLE_SECONDS = 60.0
"""Without work for so long it ends."""
FLUSH_SECONDS = 0.02
"""Results that are done wait for others no longer than this, so that few messages carry many."""
TOO_MUCH = "it took more memory than it may"
TOO_DEEP = "it is nested too deeply"
READY, RESULT, EXCEEDED, FAILED = range(4)
"""The kinds of what it sends."""

_ENDED_BY_ITS_PARENT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(descriptor: int, cpu_seconds: float, memory_bytes: int) -> None:
    """Do what is asked for through this end of a pipe, until the other end is closed or nothing comes for a while.

    Each piece may take so much of the processor, and all of it so much memory beside this program.
    """
    for number in _ENDED_BY_ITS_PARENT:  # they reach every process of a terminal, or of a service
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the end of a process, whatever library it is in
    _bound_memory(memory_bytes)
    asked = Connection(descriptor)
    asked.send_bytes(msgspec.msgpack.encode([(READY, None)]))
    with suppress(EOFError, ConnectionError):
        while asked.poll(IDLE_SECONDS):
            work, inputs = pickle.loads(asked.recv_bytes())  # noqa: S301 — its parent sends it
            _do(asked, partial(_result, work, cpu_seconds), inputs)


def _do(asked: Connection, result: Callable[[Any], tuple[int, Any]], inputs: list[Any]) -> None:
    results: list[tuple[int, Any]] = []
    since = time.monotonic()
    for value in inputs:
        results.append(result(value))
        if (now := time.monotonic()) - since > FLUSH_SECONDS:
            asked.send_bytes(msgspec.msgpack.encode(results))
            results, since = [], now
    if results:
        asked.send_bytes(msgspec.msgpack.encode(results))


def _result(work: Callable[[Any], Any], cpu_seconds: float, value: Any) -> tuple[int, Any]:
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return RESULT, work(value)
    except MemoryError:
        return EXCEEDED, TOO_MUCH
    except RecursionError:
        return EXCEEDED, TOO_DEEP
    except Exception:  # noqa: BLE001 — whatever it is, it is raised where the work was asked for
        return FAILED, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _bound_memory(more: int) -> None:
    """From here on it may take so much more than it has. Where it dies it leaves no copy of somebody's data behind."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    own = Path("/proc/self")
    if not own.exists():
        return  # no other system counts address space in a way that a limit could be made of
    taken = int((own / "statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = taken + more
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    with suppress(OSError):  # where a container runs out of memory, this is what ends, and not the server
        (own / "oom_score_adj").write_text("1000")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
