"""What states of two people are merged with, see `Faster.merge`: dicts, and bounds on their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Entries = dict[str, Any]


def merge_entries(first: Entries, second: Entries, merge: Callable[[Any, Any], Any]) -> Entries:
    """The entries of both; ``merge`` makes one of two under the same name, in either order. Reuses both dicts."""
    if len(first) < len(second):
        first, second = second, first
    for name, value in second.items():
        first[name] = merge(first[name], value) if name in first else value
    return first


def keep_smallest(entries: Entries, most: int, key: Callable[[str], Any] | None = None) -> Entries:
    """Drop all but the ``most`` entries with the smallest names, or of which ``key`` is smallest."""
    if len(entries) > most:
        for name in sorted(entries, key=key)[most:]:
            del entries[name]
    return entries


def newest(first: list[Any], second: list[Any]) -> list[Any]:
    """The later of two values that each begin with (occurred_at, event id)."""
    return first if (first[0], first[1]) > (second[0], second[1]) else second
