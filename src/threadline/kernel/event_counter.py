"""An event counter: a metric that counts recorded events of some types, by a few labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from threadline.kernel.event import Event


@dataclass(frozen=True, slots=True)
class EventCounter:
    """Declared like a projection. It counts what this process commits, since it started."""

    name: str
    """Of the metric, which ends in ``_total``."""
    meaning: str
    labels: tuple[str, ...]
    """Besides ``workspace``, which is the first. No value may name a person."""
    types: frozenset[str]
    values: Callable[[Event], tuple[str, ...] | None]
    """The values of the labels; None for an event that does not count."""
