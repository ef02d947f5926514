"""What states of two people are merged with, see `Faster.merge`: dicts, and bounds on their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Entries = dict[str, Any]


def merge_entries(one: Entries, other: Entries, merge: Callable[[Any, Any], Any]) -> Entries:
    """The entries of both; ``merge`` makes one of two under the same name, in either order. Reuses both dicts."""
    if len(one) < len(other):
        one, other = other, one
    for name, value in other.items():
        one[name] = merge(one[name], value) if name in one else value
    return one


def keep_smallest(entries: Entries, most: int, key: Callable[[str], Any] | None = None) -> Entries:
    """Drop all but the ``most`` entries with the smallest names, or of which ``key`` is smallest."""
    if len(entries) > most:
        for name in sorted(entries, key=key)[most:]:
            del entries[name]
    return entries


def newest(one: list[Any], other: list[Any]) -> list[Any]:
    """The later of two values that each begin with (occurred_at, event id)."""
    return one if (one[0], one[1]) > (other[0], other[1]) else other
