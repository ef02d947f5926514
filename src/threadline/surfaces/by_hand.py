"""Processes that follow what is made by hand: a new version is taken in where others write to the same store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from threadline.capabilities.foundation.definitions.versions import newest_number
from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.settings import Settings

log = logging.getLogger("threadline.definitions")

LOOK_SECONDS_MIN = 1.0
"""Between two looks: each is a read, and nobody who puts a definition in force waits for less."""
_NOT_IN_FORCE = "version %d of what is made by hand is not in force here, the one before stays"
STOP_SECONDS = 5.0
"""How long an end waits for a version that is being taken in."""


def look_seconds(settings: Settings) -> float | None:
    """How often to look for a version of another process; None: there is none that could write one."""
    return max(settings.rules_refresh_seconds, LOOK_SECONDS_MIN) if "://" in settings.store else None


class Following:
    """Looks for a version that is newer than that of the engine in use, and has it taken in."""

    def __init__(self, current: Callable[[], Engine], take_in: Callable[[int], None]) -> None:
        """``take_in`` is handed the number of the version."""
        self._current = current
        self._take_in = take_in
        self._refused = 0

    def look(self) -> None:
        """Look now. A version that does not go with the files here is told once, and the one before stays."""
        number = 0
        try:
            engine = self._current()
            number = newest_number(engine.store)
            if number not in (engine.maintenance.by_hand, self._refused):
                self._take_in(number)
        except Unavailable as error:  # a store that is away now may be back at the next look
            log.debug("versions of what is made by hand: %s", error)
        except ThreadlineError as error:
            self._refused = number
            log.error("%s: %s", _NOT_IN_FORCE % number, error)
        except Exception:
            self._refused = number
            log.exception(_NOT_IN_FORCE, number)


class Follower:
    """The same from time to time, in a thread of its own."""

    def __init__(self, seconds: float, current: Callable[[], Engine], take_in: Callable[[int], None]) -> None:
        self._seconds = seconds
        self._following = Following(current, take_in)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="threadline-by-hand", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)

    def _follow(self) -> None:
        while not self._stopping.wait(self._seconds):
            self._following.look()
