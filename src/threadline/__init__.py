"""One thread of events per person: recorded exactly once, folded in the same commit, read at any instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadline.app import open as open  # noqa: A004 — `threadline.open(path)` reads as what it does
    from threadline.app import open_engine as open_engine
    from threadline.engine.engine import Engine as Engine
    from threadline.kernel.errors import BeingErased as BeingErased
    from threadline.kernel.errors import Conflict as Conflict
    from threadline.kernel.errors import EventDamaged as EventDamaged
    from threadline.kernel.errors import EventRejected as EventRejected
    from threadline.kernel.errors import Forbidden as Forbidden
    from threadline.kernel.errors import InvalidDefinition as InvalidDefinition
    from threadline.kernel.errors import InvalidSetting as InvalidSetting
    from threadline.kernel.errors import InvalidValue as InvalidValue
    from threadline.kernel.errors import LimitExceeded as LimitExceeded
    from threadline.kernel.errors import MalformedBody as MalformedBody
    from threadline.kernel.errors import MergeRefused as MergeRefused
    from threadline.kernel.errors import NotFound as NotFound
    from threadline.kernel.errors import OutcomeUnknown as OutcomeUnknown
    from threadline.kernel.errors import StoreBusy as StoreBusy
    from threadline.kernel.errors import StoreDamaged as StoreDamaged
    from threadline.kernel.errors import StoreFull as StoreFull
    from threadline.kernel.errors import StoreMissing as StoreMissing
    from threadline.kernel.errors import ThreadlineError as ThreadlineError
    from threadline.kernel.errors import TooManyRequests as TooManyRequests
    from threadline.kernel.errors import Unauthorized as Unauthorized
    from threadline.kernel.errors import Unavailable as Unavailable
    from threadline.kernel.event import Event as Event
    from threadline.kernel.event import Identifier as Identifier
    from threadline.kernel.event import Receipt as Receipt
    from threadline.kernel.event import Recorded as Recorded
    from threadline.kernel.operation import Operation as Operation
    from threadline.kernel.policy import Policy as Policy
    from threadline.kernel.projection import Projection as Projection
    from threadline.settings import Settings as Settings
    from threadline.surfaces.python.call import StaleAnswer as StaleAnswer
    from threadline.surfaces.python.client import AsyncClient as AsyncClient
    from threadline.surfaces.python.client import Client as Client
    from threadline.surfaces.python.embedded import Threadline as Threadline

_HOMES = {
    "AsyncClient": "threadline.surfaces.python.client",
    "Client": "threadline.surfaces.python.client",
    "BeingErased": "threadline.kernel.errors",
    "EventDamaged": "threadline.kernel.errors",
    "Conflict": "threadline.kernel.errors",
    "Engine": "threadline.engine.engine",
    "Event": "threadline.kernel.event",
    "EventRejected": "threadline.kernel.errors",
    "Forbidden": "threadline.kernel.errors",
    "Identifier": "threadline.kernel.event",
    "InvalidDefinition": "threadline.kernel.errors",
    "InvalidSetting": "threadline.kernel.errors",
    "InvalidValue": "threadline.kernel.errors",
    "LimitExceeded": "threadline.kernel.errors",
    "MalformedBody": "threadline.kernel.errors",
    "MergeRefused": "threadline.kernel.errors",
    "NotFound": "threadline.kernel.errors",
    "OutcomeUnknown": "threadline.kernel.errors",
    "Operation": "threadline.kernel.operation",
    "Policy": "threadline.kernel.policy",
    "Projection": "threadline.kernel.projection",
    "Receipt": "threadline.kernel.event",
    "Recorded": "threadline.kernel.event",
    "Settings": "threadline.settings",
    "StaleAnswer": "threadline.surfaces.python.call",
    "StoreBusy": "threadline.kernel.errors",
    "StoreDamaged": "threadline.kernel.errors",
    "StoreFull": "threadline.kernel.errors",
    "StoreMissing": "threadline.kernel.errors",
    "Threadline": "threadline.surfaces.python.embedded",
    "ThreadlineError": "threadline.kernel.errors",
    "TooManyRequests": "threadline.kernel.errors",
    "Unauthorized": "threadline.kernel.errors",
    "Unavailable": "threadline.kernel.errors",
    "open": "threadline.app",
    "open_engine": "threadline.app",
}
"""Where each public name lives. They are imported on first use, so that the kernel can be imported alone."""

__all__ = [
    "AsyncClient",
    "BeingErased",
    "Client",
    "Conflict",
    "Engine",
    "Event",
    "EventDamaged",
    "EventRejected",
    "Forbidden",
    "Identifier",
    "InvalidDefinition",
    "InvalidSetting",
    "InvalidValue",
    "LimitExceeded",
    "MalformedBody",
    "MergeRefused",
    "NotFound",
    "Operation",
    "OutcomeUnknown",
    "Policy",
    "Projection",
    "Receipt",
    "Recorded",
    "Settings",
    "StaleAnswer",
    "StoreBusy",
    "StoreDamaged",
    "StoreFull",
    "StoreMissing",
    "Threadline",
    "ThreadlineError",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
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
