"""What bringing everybody up to changed definitions has come to, and what has changed."""

from __future__ import annotations

from typing import NamedTuple


class Advanced(NamedTuple):
    """How far everybody was brought up to the definitions in force by one call."""

    step: str
    """``people``, whose states are folded again, or the name of a `Refresh`; empty: everybody was up to date."""
    people: int
    """People looked at."""
    next: str
    """Where to go on; empty when everybody is up to date."""


class DefinitionChange(NamedTuple):
    """A definition that differs from the one that everybody was last brought up to."""

    change: str
    """``added``, ``changed`` or ``removed``."""
    section: str
    name: str
