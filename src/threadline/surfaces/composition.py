"""What the composition root hands to a surface that has to open engines itself, as the command line does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from threadline.engine.dispatch import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.operation import Operation
from threadline.settings import Settings


class Composition(NamedTuple):
    """The doors to the composition root. Surfaces are below it and cannot import it."""

    open_engine: Callable[[Settings, bool], Engine]
    """(settings, readonly) -> the engine on the store that the settings name."""
    open_dispatcher: Callable[[Engine], Dispatcher]
    """The dispatcher of an engine, with the senders there are."""
    operations: Callable[[], tuple[Operation, ...]]
    """Every operation there is; needs no store."""
