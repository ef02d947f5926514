"""The states of one person, which stay packed until somebody touches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from threadline.engine.catalogue import Folding
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Fold, State

_unpack = msgspec.msgpack.Decoder().decode
_unpack_parts = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode

Again = Callable[[int], State]
"""Folds the state of a projection from the log."""


class States(Sequence[State]):
    """One state per projection of the catalogue, in its order.

    An event touches few projections, and of one that is kept in parts few parts: what it does not touch goes from the
    store and back as bytes. Unpacking and packing everything was measured at a third of the whole write path.
    """

    __slots__ = ("_kept", "folding")

    def __init__(self, folding: Folding, kept: list[Any] | None = None) -> None:
        self.folding = folding
        self._kept: list[Any] = folding.empty() if kept is None else kept

    def take(self, recorded: Recorded, steps: Sequence[tuple[int, Fold]], again: Again | None = None) -> None:
        """Fold an event into the states that it touches.

        ``again`` for one that comes late: it folds a state from the log, which one that needs order may ask for.
        """
        kept, projections = self._kept, self.folding.projections
        for index, fold in steps:
            if again is not None and projections[index].ordered and not self._folds_in_place(index, recorded):
                kept[index] = again(index)
            else:
                state = kept[index]
                folded = fold(self.opened(index) if state.__class__ is msgspec.Raw else state, recorded)
                if folded is not None:
                    kept[index] = folded

    def _folds_in_place(self, index: int, recorded: Recorded) -> bool:
        in_place = self.folding.projections[index].in_place
        return in_place is not None and in_place(self.opened(index), recorded)

    def opened(self, index: int) -> State:
        """One state, of which parts that nothing has touched may still be packed."""
        state = self._kept[index]
        if state.__class__ is msgspec.Raw:
            state = (_unpack_parts if self.folding.projections[index].parts else _unpack)(state)
            self._kept[index] = state
        return state

    def __getitem__(self, index: Any) -> Any:
        """One whole state."""
        state = self._kept[index]
        if state.__class__ is msgspec.Raw:
            state = self._kept[index] = _unpack(state)
        elif self.folding.projections[index].parts:
            for name, part in state.items():
                if part.__class__ is msgspec.Raw:
                    state[name] = _unpack(part)
        return state

    def __setitem__(self, index: int, state: State) -> None:
        self._kept[index] = state

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[State]:
        return (self[index] for index in range(len(self._kept)))

    def kept(self) -> list[Any]:
        """As they are to be packed: whole, in parts, or still as bytes."""
        return self._kept
