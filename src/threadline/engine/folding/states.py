"""The states of one person: packed as in the snapshot until first use, then with the events since folded in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from threadline.engine.folding.catalogue import Folding
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Fold, State

_unpack = msgspec.msgpack.Decoder().decode

Again = Callable[[int], State]
"""Folds the state of a projection from the log."""
Tail = dict[int, list[tuple[Fold, Recorded]]]
"""Projection -> its folds of the events since the snapshot, in the order in which they were recorded."""


class States(Sequence[State]):
    """One state per projection of the catalogue, in its order.

    A state of a snapshot stays packed until it is asked for: a reader of features pays for features alone. The events
    of the tail are folded into it at that moment, in the order in which they were recorded.
    """

    __slots__ = ("_again", "_tail", "folding", "outdated", "touched", "values")

    def __init__(self, folding: Folding, values: list[Any] | None = None) -> None:
        self.folding = folding
        self.values: list[Any] = folding.empty() if values is None else values
        """Live states, and `msgspec.Raw` for those that nothing has asked for."""
        self._tail: Callable[[], Sequence[Recorded]] | Tail = {}
        self.outdated: set[int] = set()
        """States that a late event has invalidated; they are folded from the log on next use."""
        self.touched = 0
        """The projections that the last event has touched, as bits."""
        self._again: Again | None = None

    def follow(self, tail: Callable[[], Sequence[Recorded]]) -> None:
        """Fold the events that ``tail`` reads into each packed state when it is first asked for."""
        self._tail = tail

    def settle(self) -> None:
        """Fold the tail and what is outdated. A state that neither concerns stays packed."""
        for index in (*self.outdated, *self._steps()):
            self[index]

    def take(self, recorded: Recorded, steps: Sequence[tuple[int, Fold]], again: Again | None = None) -> bool:
        """Fold an event into the states that it touches; returns whether a state has to be folded from the log.

        ``again`` is given for a late event: it folds an ordered state that cannot take the event in place from the log,
        on next use, so that many late events cost one refold.
        """
        values, projections = self.values, self.folding.projections
        self.touched = 0
        for index, fold in steps:
            if index in self.outdated:
                self.touched |= 1 << index
                continue
            if again is not None and projections[index].ordered:
                in_place = projections[index].in_place
                if in_place is None or not in_place(self[index], recorded):
                    self.outdated.add(index)
                    self._again = again
                    self.touched |= 1 << index
                    continue
            state = fold(self[index], recorded)
            if state is not None:
                values[index] = state
                self.touched |= 1 << index
        return bool(self.outdated)

    def __getitem__(self, index: Any) -> Any:
        state = self.values[index]
        if index in self.outdated:
            assert self._again is not None
            state = self.values[index] = self._again(index)
            self.outdated.discard(index)
        elif state.__class__ is msgspec.Raw:
            state = _unpack(state)
            for fold, recorded in self._steps().get(index, ()):
                folded = fold(state, recorded)
                state = state if folded is None else folded
            self.values[index] = state
        return state

    def _steps(self) -> Tail:
        tail = self._tail
        if callable(tail):
            steps: Tail = {}
            for recorded in tail():
                for index, fold in self.folding.plan(self.folding.event_types.counts_as(recorded.event)).steps:
                    steps.setdefault(index, []).append((fold, recorded))
            # Through a name of its own: of two readers of a person, the other may have put the steps there meanwhile.
            tail = self._tail = steps
        return tail

    def __setitem__(self, index: int, state: State) -> None:
        self.values[index] = state
        self.outdated.discard(index)

    def __len__(self) -> int:
        return len(self.values)

    def to_pack(self) -> list[Any]:
        """Every state with its tail folded in; an unused state without a tail stays packed."""
        self.settle()
        return self.values
