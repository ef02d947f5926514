"""The sender port: carries one effect out and says what came of it."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from threadline.kernel.policy import Effect


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an effect. It becomes an event in the person's thread."""

    type: str
    """The event's type, e.g. ``threadline.effect_done``."""
    properties: dict[str, Any] = {}
    retry_after_seconds: float | None = None
    """Set when the effect did not happen and should be tried again after this long."""


class Sender(Protocol):
    """Carries out effects of one kind. May block; is called with a lease held and must return within it."""

    kind: str

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Carry it out once. ``effect_id`` is the same on every retry: pass it on as idempotency key."""
        ...
