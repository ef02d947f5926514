"""The sender port: carries one effect out and says what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from threadline.kernel.policy import Effect


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an effect. It becomes an event in the person's thread."""

    type: str
    """The event's type, e.g. ``threadline.effect_done``."""
    properties: dict[str, Any] = {}
    retry_after_seconds: float | None = None
    """Set when the effect did not happen and should be tried again after this long."""
    parked: str = ""
    """Why it did not happen and will not by itself; it is parked until somebody drives it again."""
    place: Literal["well", "ill", "gone"] = "well"
    """What this says of where it went: ``ill`` counts towards leaving the lane alone for a while; after ``gone``
    nothing is sent there any more until somebody allows it again."""


class Sender(Protocol):
    """Carries out effects of one kind. May block; is called with a lease held and must return within it.

    Effects of a lane with more than one at once are sent by several threads.
    """

    kind: str

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Carry it out once. ``effect_id`` is the same on every retry: pass it on as idempotency key."""
        ...


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue of its own in the outbox, so that a slow place holds up no other. Declared like a projection."""

    name: str
    at_once: int = 1
    """Effects that are sent at the same time."""
    give_up_seconds: float | None = None
    """How long after it was first due an effect that fails is tried again; then it is parked. None: for ever."""
    failures_max: int = 0
    """Failures of the place in a row after which it is left alone for a while; 0: it never is."""
    place: Any = None
    """Where it leads, for the sender that the composition root makes."""
