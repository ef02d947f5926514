"""Commands that are told to end: they do so as after Ctrl-C, and leave nothing half done behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, end what runs here by an exception.

    By themselves they end the process on the spot: its unfinished files and the processes it has started would stay.
    A signal that is ignored, as `nohup` asks for, stays ignored.
    """

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    usual = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)
