"""A bounded cache of two generations: nearly LRU, for one dictionary look-up per use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

FREED_A_PUT = 4
"""Values of a generation that was dropped are freed a few at a time. Thousands of people at once kept every thread of
the process from the interpreter for 50 ms."""


class TwoGenerationCache(Generic[K, V]):
    """Keeps values of between ``size`` and ``2 * size``, roughly the latest used.

    ``weigh`` gives the weight of a value; without it each weighs one. A value that grows weighs more from its next
    `put` on. Threads that change it at once may lose values, and never get a wrong one.
    """

    __slots__ = ("_dropped", "_filled", "_old", "_size", "_weigh", "_weights", "_young")

    def __init__(self, size: int, weigh: Callable[[V], int] | None = None) -> None:
        self._size = size
        self._weigh = weigh
        self._filled = 0
        """The weight of the young generation."""
        self._weights: dict[K, int] = {}
        """What each value of the young generation weighed when it was put there; empty without `weigh`."""
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._dropped: dict[K, V] = {}
        """What is no longer kept and not freed yet."""

    def get(self, key: K) -> V | None:
        """The value under a key, which counts as a use."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def peek(self, key: K) -> V | None:
        """The value under a key, without counting as a use."""
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def put(self, key: K, value: V) -> None:
        """Add or replace a value. When the young generation is full it becomes the old, and the old one is dropped."""
        weigh = self._weigh
        if weigh is not None:
            weight = weigh(value)
            added = weight - self._weights.get(key, 0)
            if added:
                self._make_room(added, weight)
                self._weights[key] = weight
        elif key not in self._young:
            self._make_room(1, 1)
        self._young[key] = value

    def _make_room(self, added: int, weight: int) -> None:
        """Turn the generations if the young one would be too heavy by what is added, the whole weight of its value."""
        self._filled += added
        if self._filled > self._size and self._young:
            self._dropped, self._old, self._young, self._weights = self._old, self._young, {}, {}
            self._filled = weight
        elif self._dropped:
            self._free_some()

    def _free_some(self) -> None:
        with suppress(KeyError):  # another thread has freed the last one
            for _ in range(FREED_A_PUT):
                self._dropped.popitem()

    def forget(self, key: K) -> None:
        """Drop a value if it is there."""
        if self._young.pop(key, None) is not None:
            self._filled -= 1 if self._weigh is None else self._weights.pop(key, 0)
        self._old.pop(key, None)

    def __bool__(self) -> bool:
        """Whether anything is kept."""
        return bool(self._young or self._old)

    def clear(self) -> None:
        """Drop everything."""
        self._young, self._old, self._dropped, self._weights, self._filled = {}, {}, {}, {}, 0
