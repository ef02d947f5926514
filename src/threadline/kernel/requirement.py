"""A requirement: what an event of one type must look like to be recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadline.kernel.event import Event


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the events of one type must satisfy. Declared like a projection.

    It is checked once, when somebody sends a new event: never for what is already in the log, for what Threadline adds
    itself, or in a refold.
    """

    name: str
    """The type of the events."""
    check: Callable[[Event], None]
    """Raises `EventRejected` for an event that is not to be recorded. Pure."""
    schema: Mapping[str, Any]
    """The same as JSON Schema (2020-12) of the event's properties, for whoever wants to know before sending."""
