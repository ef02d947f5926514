"""A bounded cache of two generations: what was used lately survives, at the price of a dictionary look-up."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TwoGenerationCache(Generic[K, V]):
    """Keeps between ``size`` and ``2 * size`` values, roughly the latest used. Not thread-safe."""

    __slots__ = ("_old", "_size", "_young")

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value under a key, which counts as a use."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def peek(self, key: K) -> V | None:
        """The same, but no use: it changes nothing, so any thread may ask."""
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def put(self, key: K, value: V) -> None:
        """Keep a value; the generation that was not used since the last turn goes when this one is full."""
        if len(self._young) >= self._size:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def forget(self, key: K) -> None:
        """Drop a value if it is there."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def __bool__(self) -> bool:
        """Whether anything is kept."""
        return bool(self._young or self._old)

    def clear(self) -> None:
        """Drop everything."""
        self._young.clear()
        self._old.clear()
