"""An effect: something outside that a policy wishes for."""

from __future__ import annotations

from typing import Any

import msgspec


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: something outside (send, call). It goes through the outbox and comes back as an event."""

    kind: str
    """The sender's kind, e.g. ``console``, ``webhook``."""
    key: str
    due_at: int = 0
    """Not before this instant, microseconds; 0 for at once."""
    data: dict[str, Any] = {}
    queue: str = ""
    """The `Queue` in which it waits; in the common one without a name, or with one that nobody has declared."""
