"""What a feature reads in an event: fields, currencies, keys and the local hour."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from threadline.capabilities.foundation.conditions import Path
from threadline.kernel.calendar import day_offset, offset, zone_named
from threadline.kernel.event import Event
from threadline.kernel.fixed import DECIMAL, DECIMAL_LENGTH_MAX
from threadline.kernel.time import DAY, HOUR

SCALAR_LENGTH_MAX = 256
"""Longer texts are not kept by ``first`` and ``last``: the state of a person must stay small."""

MONDAY = 3 * DAY
"""1970-01-01 was a Thursday, three days after a Monday."""
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1


def dig(event: Event, path: Path) -> Any:
    """The field at a path, None if there is none."""
    value: Any = event.context if path[0] == "context" else event.properties
    for step in path[1:] if path[0] == "context" else path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def read_scalar(value: object) -> Any:
    """A plain value that may be kept as it is; None for anything nested, too long or too large."""
    if type(value) is str:
        return value if len(value) <= SCALAR_LENGTH_MAX else None
    if type(value) is int:
        return value if _INTEGER_MIN <= value <= _INTEGER_MAX else None
    if type(value) is float:
        return value if isfinite(value) else None
    return value if type(value) is bool else None


@lru_cache(maxsize=16_384)
def _text_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")


def read_key(value: object) -> int | None:
    """A 56-bit hash by which ``distinct`` knows a value: 1 and 1.0 are the same, 1, "1" and true are not."""
    if type(value) is str:
        return _text_hash("s" + value)
    if type(value) is bool:
        return _text_hash(f"b{value:d}")
    if type(value) is int:
        return _text_hash(f"n{value}")
    if type(value) is float and isfinite(value):
        return _text_hash(f"n{int(value)}" if value.is_integer() else f"n{value!r}")
    return None


def is_out_of_range(value: object) -> bool:
    """Whether a value that gives no amount is a number nevertheless: one too large."""
    if type(value) is str:
        return len(value) <= DECIMAL_LENGTH_MAX and DECIMAL.fullmatch(value) is not None
    return type(value) is int or (type(value) is float and isfinite(value))


def week_hour(context: Mapping[str, Any], at: int, default: str) -> int:
    """The local hour of the week, 0 (Monday, midnight) to 167, in the zone that ``context.timezone`` names."""
    return (at + offset(zone_named(context.get("timezone")) or default, at) + MONDAY) // HOUR % 168


@lru_cache(maxsize=65_536)
def day_offset_in(zone: str, default: str, day: int) -> int | None:
    """`day_offset` in the zone that a text names, or else in another one."""
    return day_offset(zone_named(zone) or default, day)
