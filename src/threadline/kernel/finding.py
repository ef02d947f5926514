"""What was seen where somebody looked whether all is well."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One thing looked at, how it stands, and what was seen; what to do as well where it is not well."""

    what: str
    sign: Literal["ok", "note", "fault"]
    seen: str
    """The figures, and the names of what is not well."""
    sentence: str = ""
    """How it stands, for who has never looked at it."""
    since: int = 0
    """Since when it is so; 0: that is not known, or it is well."""
    to_do: str = ""
    """What to do about it; empty where it is well."""
