"""The dispatcher's life in a process: it works until told to stop, whatever becomes of the store meanwhile."""

from __future__ import annotations

import logging
import threading

from threadline.engine.dispatch import Dispatcher

IDLE_SECONDS = 1.0
FAILED_SECONDS = 10.0

log = logging.getLogger("threadline.work")


def keep_working(dispatcher: Dispatcher, stopping: threading.Event) -> None:
    """Fire timers and send what is due until ``stopping`` is set."""
    while not stopping.is_set():
        try:
            dispatcher.run(stopping, idle_seconds=IDLE_SECONDS)
        except Exception:  # what is due stays due; a store that is full or busy now may not be in a while
            log.exception("dispatch failed; it goes on in a while")
            stopping.wait(FAILED_SECONDS)
