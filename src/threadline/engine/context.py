"""What an operation is handed when it runs: the engine, the workspace of the caller, and the instant."""

from __future__ import annotations

from typing import Literal, NamedTuple

from threadline.engine.engine import Engine
from threadline.kernel.event import source_type_of


class Caller(NamedTuple):
    """Who asks, as the audit log names them."""

    name: str = ""
    """Of the account, the token or the user of the operating system; empty: that of the `Context.source`."""
    credential: Literal["account", "token", "os_user", ""] = ""
    """Empty for a program that has the store open itself."""
    surface: Literal["http", "console", "mcp", "cli", "python"] = "python"


class Context(NamedTuple):
    """The implementation of the kernel's `Context`."""

    engine: Engine
    workspace: str
    now: int
    source: str = "direct"
    """The name of the credential that asks; events recorded through it have it as their source."""
    over_wire: bool = False
    """Whether it came from another process: then no name of a credential makes it one of this very process."""
    caller: Caller = Caller()

    @property
    def source_type(self) -> str:
        """What the events are that are recorded through it; see `Event.source_type`."""
        return "external" if self.over_wire else source_type_of(self.source)
