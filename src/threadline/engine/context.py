"""What an operation is handed when it runs: the engine, the workspace of the caller, and the instant."""

from __future__ import annotations

from typing import NamedTuple

from threadline.engine.engine import Engine


class Context(NamedTuple):
    """The implementation of the kernel's `Context`."""

    engine: Engine
    workspace: str
    now: int
    source: str = "direct"
    """The name of the credential that asks; events recorded through it have it as their source."""
