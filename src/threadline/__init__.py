"""One thread of events per person: recorded exactly once, folded in the same commit, read at any instant.

A customer data platform, feature store, rules engine, journey builder and e-mail tool in one library: profiles,
segments, features, points, decisions and mails are derived from one ordered, idempotent log. It needs no server:

    >>> import threadline
    >>> with threadline.open("memory:") as shop:
    ...     receipt = shop.track("ada", "purchase_completed", {"total": 30, "currency": "EUR"}, key="order-1")
    ...     again = shop.track("ada", "purchase_completed", {"total": 30, "currency": "EUR"}, key="order-1")
    ...     receipt.status, again.status, shop.person("ada").features["monetary_total"].value
    ('accepted', 'duplicate', 30.0)

`open` opens a store in this process: the path of a SQLite file, the URL of PostgreSQL or DynamoDB, or ``memory:``.
Its options are ``workspace``, ``source``, ``definitions``, ``readonly``, ``capabilities``, ``settings`` and
``clock``. `Client` and `AsyncClient` have the same methods on a server (``url``, ``token``). Errors are
`ThreadlineError`, by kind. `Event`, `Projection`, `Policy` and `Operation` are for those who extend it:
docs/how-to-add-a-capability.md. The code opens with docs/read-the-code.md.
"""

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
    from threadline.kernel.errors import InvalidAddress as InvalidAddress
    from threadline.kernel.errors import InvalidDefinition as InvalidDefinition
    from threadline.kernel.errors import InvalidSetting as InvalidSetting
    from threadline.kernel.errors import InvalidValue as InvalidValue
    from threadline.kernel.errors import LimitExceeded as LimitExceeded
    from threadline.kernel.errors import MalformedBody as MalformedBody
    from threadline.kernel.errors import MergeRefused as MergeRefused
    from threadline.kernel.errors import NotConfigured as NotConfigured
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

_NAMES = {
    "threadline.app": "open open_engine",
    "threadline.engine.engine": "Engine",
    "threadline.kernel.errors": (
        "BeingErased Conflict EventDamaged EventRejected Forbidden InvalidAddress InvalidDefinition InvalidSetting "
        "InvalidValue LimitExceeded MalformedBody MergeRefused NotConfigured NotFound OutcomeUnknown StoreBusy "
        "StoreDamaged StoreFull StoreMissing ThreadlineError TooManyRequests Unauthorized Unavailable"
    ),
    "threadline.kernel.event": "Event Identifier Receipt Recorded",
    "threadline.kernel.operation": "Operation",
    "threadline.kernel.policy": "Policy",
    "threadline.kernel.projection": "Projection",
    "threadline.settings": "Settings",
    "threadline.surfaces.python.call": "StaleAnswer",
    "threadline.surfaces.python.client": "AsyncClient Client",
    "threadline.surfaces.python.embedded": "Threadline",
}
"""The public names by where they live. They are imported on first use, so that the kernel can be imported alone."""

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
    "InvalidAddress",
    "InvalidDefinition",
    "InvalidSetting",
    "InvalidValue",
    "LimitExceeded",
    "MalformedBody",
    "MergeRefused",
    "NotConfigured",
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

    home = next((module for module, names in _NAMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'threadline' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__]
