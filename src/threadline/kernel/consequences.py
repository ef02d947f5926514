"""What something would cause that is only rehearsed: how many events, effects, and timers of policies that send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple


class Consequences(NamedTuple):
    """How much policies would add at once."""

    events: Mapping[str, int] = {}
    """By type, without the events that are rehearsed themselves."""
    effects: Mapping[str, int] = {}
    """By kind, such as ``mail``."""
    waiting: int = 0
    """Timers that may send something later: somebody waits at a step of a journey."""

    @property
    def sent(self) -> int:
        """How much is sent, at once or later. Above `UNASKED_EFFECTS_MAX` it has to be confirmed."""
        return sum(self.effects.values()) + self.waiting

    def with_more(self, more: Consequences) -> Consequences:
        """Both together."""
        events, effects = Counter(self.events) + Counter(more.events), Counter(self.effects) + Counter(more.effects)
        return Consequences(events, effects, self.waiting + more.waiting)
