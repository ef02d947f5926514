"""The life of a process that works: until it is told to stop, whatever becomes of the store meanwhile."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.errors import Unavailable

IDLE_SECONDS = 1.0
FAILED_SECONDS = 10.0

log = logging.getLogger("threadline.work")


def keep_working(dispatcher: Dispatcher, stopping: threading.Event) -> None:
    """Fire timers and send what is due until ``stopping`` is set."""
    while not stopping.is_set():
        try:
            dispatcher.run(stopping, idle_seconds=IDLE_SECONDS)
        except Unavailable as error:  # what is due stays due; a store that is full or away now may not be in a while
            log.warning("what is due waits for the store: %s", error)
            stopping.wait(FAILED_SECONDS)
        except Exception:
            log.exception("dispatch failed; it goes on in a while")
            stopping.wait(FAILED_SECONDS)


def at_hang_up(stop: Callable[[int, FrameType | None], object], reload: Callable[[], None] | None = None) -> None:
    """Stop in good order when the terminal goes away, unless somebody has said that it may, as ``nohup`` does.

    Where no terminal went away, SIGHUP is a request of an operator to ``reload``; without that it stops as well.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return
    began_with_terminal = _has_terminal()

    def hung_up(number: int, frame: FrameType | None) -> None:
        if reload is None or (began_with_terminal and not _has_terminal()):
            stop(number, frame)
        else:
            reload()

    signal.signal(signal.SIGHUP, hung_up)


def _has_terminal() -> bool:
    """Whether a terminal controls this process, from which a signal may come because it was closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
