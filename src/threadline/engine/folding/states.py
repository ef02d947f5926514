"""The states of one person: packed as in the snapshot until first use, then with the events since folded in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from threadline.engine.folding.catalogue import Folding
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Fold, State

_plain = msgspec.msgpack.Decoder().decode
_apart = msgspec.msgpack.Decoder(dict[str, msgspec.Raw] | list[Any] | str | int | float | bool | None).decode
_getitem, _get, _set, _pop, _keys = dict.__getitem__, dict.get, dict.__setitem__, dict.pop, dict.keys


_pack = msgspec.msgpack.Encoder().encode
_states_apart = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode

Again = Callable[[int], State]
"""Folds the state of a projection from the log."""
Tail = dict[int, list[tuple[Fold, Recorded]]]
"""Projection -> its folds of the events since the snapshot, in the order in which they were recorded."""
_NO_TAIL: Tail = {}
NO_PROJECTIONS: frozenset[int] = frozenset()
"""No projection: one object for everybody who is in memory."""


class States(Sequence[State]):
    """One state per projection of the catalogue, in its order.

    A state of a snapshot stays packed until it is asked for: a reader of features pays for features alone. The events
    of the tail are folded into it at that moment, in the order in which they were recorded.
    """

    __slots__ = ("_again", "_packed", "_tail", "_values", "folding", "in_parts", "outdated", "touched")

    def __init__(self, folding: Folding, values: list[Any] | None = None) -> None:
        self.folding = folding
        self._values: list[Any] | None = folding.empty() if values is None else values
        self._packed = b""
        """All states, where there are no values."""
        self._tail: Callable[[], Sequence[Recorded]] | Tail = _NO_TAIL
        self.outdated = NO_PROJECTIONS
        """States that a late event has invalidated; they are folded from the log on next use."""
        self.in_parts = False
        """Whether states are unpacked in parts: for who folds into them. Who views them needs all, faster at once."""
        self.touched = 0
        """The projections that the last event has touched, as bits."""
        self._again: Again | None = None

    @property
    def values(self) -> list[Any]:
        """Live states, and `msgspec.Raw` for those that nothing has asked for."""
        values = self._values
        if values is None:
            values = self._values = _states_apart(self._packed)
            self._packed = b""
        return values

    def unpacked(self, steps: Iterable[tuple[int, Fold]]) -> list[Any]:
        """All values, of which those that these folds take are live."""
        values = self.values
        for index, _ in steps:
            if values[index].__class__ is msgspec.Raw:
                self[index]
        return values

    def follow(self, tail: Callable[[], Sequence[Recorded]]) -> None:
        """Fold the events that ``tail`` reads into each packed state when it is first asked for."""
        self._tail = tail

    def settle(self) -> None:
        """Fold the tail and what is outdated. A state that neither concerns stays packed."""
        if self.outdated or self._tail:
            for index in (*self.outdated, *self._steps()):
                self[index]

    def drop_tail(self) -> None:
        """Forget the tail, which `settle` has folded in. For who has the states alone: a reader may be about to fold it
        into a state that it has just unpacked."""
        self._tail = _NO_TAIL

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
                    self.outdated |= {index}
                    self._again = again
                    self.touched |= 1 << index
                    continue
            state = fold(self[index], recorded)
            if state is not None:
                values[index] = state
                self.touched |= 1 << index
        return bool(self.outdated)

    def __getitem__(self, index: Any) -> Any:
        values = self._values
        if values is None:
            values = self.values
        state = values[index]
        if index in self.outdated:
            assert self._again is not None
            state = values[index] = self._again(index)
            self.outdated -= {index}
        elif state.__class__ is msgspec.Raw:
            in_parts = self.in_parts and self.folding.projections[index].in_parts
            state = PackedDict.unpack(state) if in_parts else _plain(state)
            if self._tail:
                for fold, recorded in self._steps().get(index, ()):
                    folded = fold(state, recorded)
                    state = state if folded is None else folded
            values[index] = state
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
        self.outdated -= {index}

    def __len__(self) -> int:
        return len(self.values)

    def repack(self, packed: bytes) -> None:
        """Leave all states in the bytes that `to_pack` has just been packed into, until they are asked for again: one
        object instead of hundreds for somebody who waits for the next event."""
        self._values, self._packed, self._tail, self.in_parts = None, packed, _NO_TAIL, True

    def plain(self) -> list[State]:
        """Every state as plain data, such as can be sorted or written as JSON."""
        states: list[State] = _plain(_pack(self.to_pack()))
        return states

    def to_pack(self) -> list[Any]:
        """Every state with its tail folded in; an unused state without a tail stays packed."""
        self.settle()
        return self.values


# --- large states of which an event touches a few parts --------------------------------------------


class PackedDict(dict[str, Any]):
    """A dict of which each value is unpacked when somebody first asks for it.

    An untouched value takes its packed bytes and one object, of which Python's collector knows nothing; unpacked it
    takes five to ten times as much. `msgspec.msgpack` writes what is still packed as it is. Whoever asks gets the same
    as from a dict; only encoding to JSON, and C code that takes a dict apart by itself, would see what is packed.
    """

    __slots__ = ()

    plain_bytes = 200
    """What is packed in up to so many bytes is unpacked at once."""

    @classmethod
    def unpack(cls, packed: msgspec.Raw) -> Any:
        """What was packed as MessagePack; a large dict as one of this class, lists and what is in them as they are."""
        if memoryview(packed).nbytes <= cls.plain_bytes:
            return _plain(packed)
        value = _apart(packed)
        return cls(value) if value.__class__ is dict else value

    def __getitem__(self, key: str) -> Any:
        value = _getitem(self, key)
        if value.__class__ is msgspec.Raw:
            value = self.unpack(value)
            _set(self, key, value)
        return value

    def get(self, key: str, default: Any = None, /) -> Any:
        """The value under a key."""
        value = _get(self, key, default)
        if value.__class__ is msgspec.Raw:
            value = self.unpack(value)
            _set(self, key, value)
        return value

    def setdefault(self, key: str, default: Any = None, /) -> Any:
        """The value under a key, which is put there if there was none."""
        if key in self:
            return self[key]
        _set(self, key, default)
        return default

    def pop(self, key: str, *default: Any) -> Any:
        """Take out a value."""
        value = _pop(self, key, *default)
        return self.unpack(value) if value.__class__ is msgspec.Raw else value

    def popitem(self) -> tuple[str, Any]:
        """Take out the value that was put in last."""
        key, value = super().popitem()
        return key, self.unpack(value) if value.__class__ is msgspec.Raw else value

    def __iter__(self) -> Iterator[str]:
        # Without this, `dict(self)` and `{**self}` would copy what is packed.
        return iter(_keys(self))

    def values(self) -> Any:
        """All values."""
        self._unpack()
        return super().values()

    def items(self) -> Any:
        """All keys with their values."""
        self._unpack()
        return super().items()

    def copy(self) -> dict[str, Any]:
        """A dict with the same values."""
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __eq__(self, other: object) -> bool:
        self._unpack()
        if isinstance(other, PackedDict):
            other._unpack()
        return super().__eq__(other)

    __hash__ = None

    def _unpack(self) -> None:
        for key, value in super().items():
            if value.__class__ is msgspec.Raw:
                _set(self, key, self.unpack(value))
