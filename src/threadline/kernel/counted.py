"""A number with what it is of."""

from __future__ import annotations

_PLURALS = {"person": "people", "breach": "breaches"}


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with what it is of: ``1 person``, ``2,000 people``."""
    return f"{number:,} {singular if number == 1 else plural or _PLURALS.get(singular, f'{singular}s')}"
