"""Why an attempt is void, whole or for one person: it is made again, isolated, or without what is unrecordable."""

from __future__ import annotations

from collections.abc import Sequence

TOO_MANY_CHANGES = "too_many_changes"
"""Code of an event whose consequences no batch can hold."""
BEING_ERASED = "being_erased"
"""Code of an event that names a person who is being erased; it is not logged as rejected."""


class ConcurrencyConflict(Exception):
    """Another process has changed what this attempt was built on."""


class UnrecordableEvents(Exception):
    """Some events cannot be recorded."""

    def __init__(self, positions: Sequence[int], code: str, message: str) -> None:
        super().__init__(message)
        self.positions = positions
        """Of their requests in the call; empty where only the caller knows them."""
        self.code = code
