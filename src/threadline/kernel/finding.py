"""What was seen where somebody looked whether all is well."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One thing looked at, how it stands, and what was seen; what to do as well where it is not well."""

    what: str
    sign: Literal["ok", "note", "fault"]
    seen: str
