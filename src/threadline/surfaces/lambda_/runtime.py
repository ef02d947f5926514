"""What the functions of one process share: settings of the environment, the engine, and how long an invocation has."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import Unavailable
from threadline.settings import Settings, from_environment
from threadline.surfaces.by_hand import Following, look_seconds
from threadline.surfaces.composition import Composition
from threadline.surfaces.definition_checks import settings_in_force
from threadline.surfaces.lambda_ import root
from threadline.surfaces.log_lines import log_lines

log = logging.getLogger("threadline.lambda")

RESERVE_SECONDS = 2.0
"""Left of an invocation's time when no new work is begun: what is under way ends within it."""
SECONDS_UNKNOWN = 30.0
"""Of an invocation whose context does not say how long it has, as in a test."""


class Runtime:
    """One engine and what works on it. Made at the first invocation of a process, and kept for all that follow."""

    def __init__(self, composition: Composition, settings: Settings) -> None:
        self.composition = composition
        self.settings = settings
        self.engine: Engine = composition.open_engine(settings, False)
        self.is_new = True
        """Until it has once looked for all that may wait."""
        self._dispatcher: Dispatcher | None = None
        self._looked_at = time.monotonic()
        self._following = Following(lambda: self.engine, self._take_in)

    def follow(self) -> bool:
        """To be called first in an invocation: takes in what was made by hand since, unless it has looked just now.
        Whether there is another engine then."""
        before, seconds = self.engine, look_seconds(self.settings)
        if seconds is not None and time.monotonic() - self._looked_at >= seconds:
            self._looked_at = time.monotonic()
            self._following.look()
        return self.engine is not before

    def _take_in(self, version: int) -> None:
        self.engine = self.composition.reopen(self.engine, self.settings)
        self._dispatcher = None

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher of this process; opened when it is first asked for, because it needs the senders' secrets."""
        if self._dispatcher is None:
            self._dispatcher = self.composition.open_dispatcher(self.engine, self.settings)
        return self._dispatcher

    def rest(self) -> None:
        """To be called last in an invocation: the process is frozen then, and nobody may wait for it."""
        try:
            self.composition.rest(self.engine)
        except Unavailable as error:  # what was asked for is done; readers of the feed wait for ten seconds
            log.warning("the store was left without a word: %s", error)

    def close(self) -> None:
        """Close the store."""
        self.engine.close()


@cache
def runtime() -> Runtime:
    """The runtime of this process. Raises `InvalidSetting` and `InvalidDefinition` with all that is wrong."""
    log_lines()
    composition = root()
    return Runtime(composition, settings_in_force({}, composition.catalogue))


def open_early(opener: Callable[[], object] = runtime) -> None:
    """Open the store while the function starts, if this is Lambda: starting has a whole processor, whatever it pays."""
    if from_environment("AWS_LAMBDA_FUNCTION_NAME"):
        opener()


def deadline(context: Any) -> float:
    """Until when, by `time.monotonic`, an invocation may begin new work."""
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    seconds = SECONDS_UNKNOWN if remaining is None else remaining() / 1e3
    return time.monotonic() + seconds - RESERVE_SECONDS
