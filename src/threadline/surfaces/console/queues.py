"""Queues as people call them: those of addresses that rules name themselves are numbers, which say nothing to anybody.

The numbers spread hosts over several queues. What is shown is one queue, and of a single effect the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from threadline.surfaces.console.asking import Asking

ADDRESSES = "Addresses in rules"
_COUNTS = ("waiting", "retried", "unknown", "parked")
_STATES = ("stopped", "resting", "testing", "open")
"""The worst first."""


def queue_name(name: str) -> str:
    """A queue as people call it."""
    return ADDRESSES if _is_of_addresses(name) else name or "No destination"


def receiver(queue: str, url: Any) -> str:
    """Where something of a queue goes: its destination, or the host of an address that a rule names."""
    if not _is_of_addresses(queue) or not isinstance(url, str):
        return queue_name(queue)
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or queue_name(queue)
    except ValueError:
        return queue_name(queue)


def queues(asking: Asking) -> list[dict[str, Any]]:
    """The queues and how they stand, those of addresses in rules as one."""
    listed: dict[str, dict[str, Any]] = {}
    for queue in asking.ask_or({}, "effects_queues").get("queues", []):
        name = queue_name(queue["name"])
        listed[name] = _together(listed[name], queue) if name in listed else {**queue, "name": name}
    return list(listed.values())


def _together(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    sums = {name: first[name] + other[name] for name in _COUNTS}
    oldest = min((at for at in (first["oldest"], other["oldest"]) if at), default=None)
    state = min(first["state"], other["state"], key=_STATES.index)
    return {**first, **sums, "oldest": oldest, "state": state}


def _is_of_addresses(queue: str) -> bool:
    own, _, number = queue.partition(".")
    return own == "url" and number.isdigit()
