"""Why an attempt at a group is void: it is made again, with more care, or without what cannot be recorded."""

from __future__ import annotations

from collections.abc import Sequence

TOO_MANY_CHANGES = "too_many_changes"
"""Code of an event whose consequences no batch can hold."""


class Overtaken(Exception):
    """Another process has changed what this attempt was built on."""


class Poisoned(Exception):
    """Some events cannot be taken."""

    def __init__(self, positions: Sequence[int], code: str, message: str) -> None:
        super().__init__(message)
        self.positions = positions
        """Of their requests in the call; empty where that is known further up."""
        self.code = code
