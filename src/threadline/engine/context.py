"""What an operation is handed when it runs: the engine, the workspace of the caller, and the instant."""

from __future__ import annotations

from typing import NamedTuple

from threadline.engine.engine import Engine
from threadline.kernel.event import source_type_of


class Context(NamedTuple):
    """The implementation of the kernel's `Context`."""

    engine: Engine
    workspace: str
    now: int
    source: str = "direct"
    """The name of the credential that asks; events recorded through it have it as their source."""
    over_wire: bool = False
    """Whether it came from another process: then no name of a credential makes it one of this very process."""

    @property
    def source_type(self) -> str:
        """What the events are that are recorded through it; see `Event.source_type`."""
        return "external" if self.over_wire else source_type_of(self.source)
