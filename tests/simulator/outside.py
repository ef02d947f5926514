"""The world outside: what takes webhooks and mails, what it answers, and what it remembers of them."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import NamedTuple

from tests.simulator.faults import Port
from threadline.kernel.effect import Effect
from threadline.kernel.errors import OutcomeUnknown
from threadline.kernel.sender import EFFECT_DONE, EFFECT_PARKED, EFFECT_RETRIED, Outcome


class Call(NamedTuple):
    """Something that somebody outside has taken."""

    effect: str
    order: str


class Outside:
    """Takes effects, fails, and keeps silent, as the seed says."""

    def __init__(self, random: Random) -> None:
        self.taken: dict[str, list[Call]] = defaultdict(list)
        """Kind of effect -> what was taken, in order."""
        self.refused: set[str] = set()
        """Effects that were refused for good."""
        self.is_well = False
        self._random = random
        self._trouble = random.choice((0.0, 0.1, 0.3, 0.6))

    def answer(self, kind: str, effect: Effect, effect_id: str) -> Outcome:
        """What comes of a call."""
        trouble = not self.is_well and self._random.random() < self._trouble
        choice = self._random.randrange(12) if trouble else -1
        if choice in (0, 1, 2):
            return Outcome(type=EFFECT_RETRIED, retry_after_seconds=5.0, destination="failing")
        if choice in (3, 4) and kind != "letter":
            raise OSError("the line is down")
        if choice == 5:
            self.refused.add(effect_id)
            return Outcome(type=EFFECT_PARKED, parked="refused")
        if choice == 6 and self._random.random() < 0.3:
            return Outcome(type=EFFECT_PARKED, parked="gone", destination="gone")
        if choice == 7:
            raise OutcomeUnknown("the line broke before it was taken")
        self.taken[kind].append(Call(effect_id, str(effect.data.get("order", ""))))
        if choice in (8, 9):
            raise OutcomeUnknown("the line broke after it was taken")
        return Outcome(type=EFFECT_DONE, properties=effect.data.get("record", {}))

    def has_taken(self, effect_id: str) -> bool:
        """What an operator finds who asks outside."""
        return any(call.effect == effect_id for calls in self.taken.values() for call in calls)


class Line:
    """The sender of one kind in one process: it may die before the call, and before the answer."""

    def __init__(self, kind: str, outside: Outside, port: Port) -> None:
        self.kind = kind
        self._outside = outside
        self._port = port

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Call the outside."""
        self._port.happen(f"{self.kind} {effect_id}")
        outcome = self._outside.answer(self.kind, effect, effect_id)
        self._port.may_die()
        return outcome
