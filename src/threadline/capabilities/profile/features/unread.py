"""Values that give no amount, counted per slot, so that a total without them says so.

The state has them beside the slots, as ``{slot name + "!": [recorded_at, newest, unreadable, out of range]}``, with the
head of a slot: an event without a readable value is none of the slot's own.
"""

from __future__ import annotations

from typing import Any

from threadline.capabilities.profile.features.definition import ValueKind
from threadline.capabilities.profile.features.values import is_out_of_range

COUNTED: frozenset[ValueKind] = frozenset({"number", "money"})
"""The kinds of slots whose values are amounts."""

_SUFFIX = "!"
"""No name of a slot has it."""


def unread_name(slot: str) -> str:
    """Where the state has what a slot could not read."""
    return slot + _SUFFIX


def count_unread(state: dict[str, Any], slot: str, recorded_at: int, occurred_at: int, value: object) -> bool:
    """Count a value that gives no amount, in place; answers whether there was one: null and blank text are none."""
    if value is None or (type(value) is str and not value.strip()):
        return False
    name = unread_name(slot)
    counts = [0, 1] if is_out_of_range(value) else [1, 0]
    state[name] = merged_unread(state.get(name), [recorded_at, occurred_at, *counts])
    return True


def merged_unread(first: list[int] | None, second: list[int]) -> list[int]:
    """The counts of both."""
    if first is None:
        return second
    return [max(first[0], second[0]), max(first[1], second[1]), first[2] + second[2], first[3] + second[3]]


def unread_reason(counts: list[int], *, windowed: bool) -> str:
    """Such as "3 values could not be read, 1 value is out of range"."""
    _, _, unreadable, beyond = counts
    parts = [f"{_values(unreadable)} could not be read"] if unreadable else []
    if beyond:
        parts.append(f"{_values(beyond)} {'is' if beyond == 1 else 'are'} out of range")
    return ", ".join(parts) + (" so far, the newest in the window" if windowed else "")


def _values(count: int) -> str:
    return f"{count} value{'s' if count > 1 else ''}"
