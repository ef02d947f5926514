"""One thread of events per person: recorded exactly once, folded in the same commit, read at any instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadline.app import open as open  # noqa: A004 — `threadline.open(path)` reads as what it does
    from threadline.app import open_engine as open_engine
    from threadline.engine.engine import Engine as Engine
    from threadline.kernel.errors import ThreadlineError as ThreadlineError
    from threadline.kernel.event import Event as Event
    from threadline.kernel.event import Identifier as Identifier
    from threadline.kernel.event import Receipt as Receipt
    from threadline.kernel.event import Recorded as Recorded
    from threadline.kernel.operation import Operation as Operation
    from threadline.kernel.policy import Policy as Policy
    from threadline.kernel.projection import Projection as Projection
    from threadline.settings import Settings as Settings
    from threadline.surfaces.python import Threadline as Threadline

_HOMES = {
    "Engine": "threadline.engine.engine",
    "Event": "threadline.kernel.event",
    "Identifier": "threadline.kernel.event",
    "Operation": "threadline.kernel.operation",
    "Policy": "threadline.kernel.policy",
    "Projection": "threadline.kernel.projection",
    "Receipt": "threadline.kernel.event",
    "Recorded": "threadline.kernel.event",
    "Settings": "threadline.settings",
    "Threadline": "threadline.surfaces.python",
    "ThreadlineError": "threadline.kernel.errors",
    "open": "threadline.app",
    "open_engine": "threadline.app",
}
"""Where each public name lives. They are imported on first use, so that the kernel can be imported alone."""

__all__ = [
    "Engine",
    "Event",
    "Identifier",
    "Operation",
    "Policy",
    "Projection",
    "Receipt",
    "Recorded",
    "Settings",
    "Threadline",
    "ThreadlineError",
    "open",
    "open_engine",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'threadline' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__]
