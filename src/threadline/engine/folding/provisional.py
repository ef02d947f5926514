"""Provisional states: those of a person without the events that lie ahead of the clock.

A client's clock may run ahead by a day; such an event counts from its own time. A person's states include it at once,
since they must not depend on the time of reading. Until then a read would fold the person from the log, and one such
event would make every read of a busy person cost seconds for a day. So a second set of states is stored beside the
first, without those events, until they have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from threadline.engine.folding.packing import pack
from threadline.engine.folding.states import Again, States
from threadline.kernel.event import Recorded

_copied = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class ProvisionalStates:
    """States folded from exactly those events of a person that occurred before ``until``."""

    __slots__ = ("latest", "states", "until")

    def __init__(self, states: States, latest: tuple[int, str], until: int) -> None:
        self.states = states
        self.latest = latest
        """(occurred_at, id) of the newest event folded."""
        self.until = until

    def copy(self) -> ProvisionalStates:
        """A copy, of which nothing is unpacked."""
        return ProvisionalStates(copied(self.states), self.latest, self.until)

    def advance(self, until: int, events: Iterable[Recorded], only: Sequence[int] | None = None) -> None:
        """Fold what has happened since: the events in [`until`, ``until``), in occurred order.

        ``only``: into these projections, where no others are needed.
        """
        folding = self.states.folding
        for recorded in events:
            steps = folding.plan(folding.event_types.counts_as(recorded.event)).steps
            self.states.take(recorded, steps if only is None else [step for step in steps if step[0] in only])
            self.latest = (recorded.event.occurred_at, recorded.id)
        self.until = max(self.until, until)

    def fold(self, recorded: Recorded, again: Again) -> None:
        """Fold an event that occurred before `until`. ``again`` folds one projection from the log."""
        at = (recorded.event.occurred_at, recorded.id)
        folding = self.states.folding
        steps = folding.plan(folding.event_types.counts_as(recorded.event)).steps
        if self.states.take(recorded, steps, again if at < self.latest else None):
            self.states.settle()
        self.latest = max(self.latest, at)

    def at(
        self, instant: int, events: Callable[[int], Iterable[Recorded]], only: Sequence[int] | None = None
    ) -> States | None:
        """The states at an instant; None for one before the last fold: they are folded from the log.

        ``events`` gives those that occurred from an instant on and before that one, in occurred order.
        """
        if instant <= self.until:
            return self.states if self.latest[0] < instant else None
        happened = list(events(self.until))
        if not happened:
            return self.states
        then = self.copy()
        then.advance(instant, happened, only)
        return then.states

    def to_pack(self) -> tuple[Any, ...]:
        """The packed form, stored beside a person's states."""
        return self.latest, self.until, self.states.to_pack()


def copied(states: States) -> States:
    """An independent copy of states."""
    values: list[Any] = _copied(pack(states.to_pack()))
    return States(states.folding, values)
