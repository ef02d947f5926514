"""The life of a process that works: until it is told to stop, whatever becomes of the store meanwhile."""

from __future__ import annotations

import logging
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


def stop_at_hang_up(stop: Callable[[int, FrameType | None], object]) -> None:
    """Stop in good order when the terminal goes away, unless somebody has said that it may, as ``nohup`` does."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, stop)
