"""Reads index rows for capabilities: a range of a partition, or whether some rows are there."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.kernel.projection import Row
from threadline.kernel.store import Key, Store


class IndexRows:
    """The implementation of `threadline.kernel.ports.IndexRows`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(
        self,
        table: str,
        partition: str,
        start: str = "",
        stop: str | None = None,
        limit: int = 1_000,
        *,
        reverse: bool = False,
    ) -> list[Row]:
        """Rows of a partition with start <= sort < stop, by sort, at most ``limit``; go on after the last sort."""
        items = self._store.query(table, partition, start, stop, limit, reverse)
        # No store holds an empty value: a row without one is written as this byte.
        return [Row(*item.key, b"" if item.value == b"\x00" else item.value) for item in items]

    def has(self, table: str, partition: str, sorts: Sequence[str]) -> frozenset[str]:
        """Which of these sorts have a row in a partition: one read."""
        items = self._store.get([Key(table, partition, sort) for sort in sorts])
        return frozenset(item.key.sort for item in items if item is not None)
