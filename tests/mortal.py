"""A store whose process is killed at one of its commits, on whatever kind of store."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Batch, Refusal, Store


class Killed(BaseException):
    """No handler of errors sees the end of a process."""


class Fate:
    """When the process that has a store dies, and whether the store is there."""

    def __init__(self, store: Store) -> None:
        self.commits = 0
        self.killed_at = -1
        """The number of the commit at which the process is killed, counted from 1."""
        self.through = 1_000
        """How many batches of that commit go through; 0: it dies right before it. Some stores commit one by one."""
        self.unavailable = False
        self._commit = store.commit
        store.commit = self.commit  # type: ignore[method-assign]

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """Commit, or die."""
        if self.unavailable:
            raise Unavailable("the store is away")
        self.commits += 1
        if self.commits != self.killed_at:
            return self._commit(batches)
        if self.through:
            self._commit(batches[: self.through])
        raise Killed
