"""A number with what it is of."""

from __future__ import annotations

_PLURALS = {"person": "people", "breach": "breaches"}


def counted(number: int, one: str, many: str = "") -> str:
    """A number with what it is of: ``1 person``, ``2,000 people``."""
    return f"{number:,} {one if number == 1 else many or _PLURALS.get(one, f'{one}s')}"
