"""Writes effects to a stream as JSON lines: the sender for development and for seeing what would be sent."""

from __future__ import annotations

import sys
from typing import Protocol

import msgspec

from threadline.kernel.policy import Effect
from threadline.kernel.sender import EFFECT_PRINTED, Outcome, SenderFactory


class _Stream(Protocol):
    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


class ConsoleSender:
    """Prints each effect of a kind as one JSON line. The outcome says so, because nobody has received it."""

    def __init__(self, stream: _Stream, kind: str = "console") -> None:
        self.kind = kind
        self._stream = stream

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Print the effect."""
        line = {"effect": effect_id, "thread": person, "kind": effect.kind, "data": effect.data}
        self._stream.write(msgspec.json.encode(line).decode() + "\n")
        self._stream.flush()
        return Outcome(type=EFFECT_PRINTED)


CONSOLE = SenderFactory("console", lambda ports: ConsoleSender(sys.stderr))
# Shown until something delivers notifications.
NOTIFICATION = SenderFactory("notification", lambda ports: ConsoleSender(sys.stderr, "notification"))
