"""Works for a confined process: what does its job, and what takes all that there is."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path


def doubled(number: int) -> tuple[int, int]:
    """A result, and the process that made it."""
    return 2 * number, os.getpid()


def wrong(number: int) -> int:
    """Raise what nobody expects."""
    raise ArithmeticError(f"no {number}")


def bomb(kind: str) -> str:
    """End in a way that no handler of Python sees; "" does nothing."""
    if kind == "computes":
        sum(range(1 << 60))
    elif kind == "grows":
        bytearray(1 << 40)
    elif kind == "aborts":
        os.abort()
    elif kind == "nests":
        ctypes.string_at(0)
    elif kind == "recurs":
        bomb(kind)
    elif kind == "waits":
        time.sleep(3_600)
    elif kind.startswith("waits:"):
        Path(kind.removeprefix("waits:")).touch()
        time.sleep(3_600)
    elif kind.startswith("once:"):
        mark = Path(kind.removeprefix("once:"))
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return kind
