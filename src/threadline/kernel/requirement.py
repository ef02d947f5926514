"""A requirement: what an event of one type must be like before it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadline.kernel.event import Event


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is asked of the events of one type. Declared like a projection.

    It is asked once, of an event that somebody tells and that is new: never of what is in the log already, of what
    Threadline adds itself, or in a refold.
    """

    name: str
    """The type of the events."""
    check: Callable[[Event], None]
    """Raises `EventRejected` for an event that is not to be recorded. Pure."""
    schema: Mapping[str, Any]
    """The same as JSON Schema (2020-12) of the event's properties, for whoever wants to know before sending."""
