"""A job as it is stored: durable work across people, which can be watched, paused, resumed and cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from threadline.kernel.store import Check, Delete, Put
from threadline.kernel.typed import prepared

JobState = Literal["scheduled", "running", "paused", "done", "failed", "cancelled"]
ENDED: frozenset[str] = frozenset({"done", "failed", "cancelled"})


@prepared
class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as it is stored; its item's version is the fence of whoever works on it."""

    id: str
    workspace: str
    kind: str
    params: dict[str, Any] = {}
    """What to do; it never changes."""
    state: JobState = "scheduled"
    due_at: int
    """Not worked on before this instant, microseconds."""
    cursor: str = ""
    """Where to go on; the kind's own."""
    counts: dict[str, int] = {}
    """Progress: names are the kind's own; ``done`` of ``total``, where it knows them, makes a bar."""
    failures: int = 0
    """Failures of the present page in a row."""
    problem: str = ""
    """The last failure of the present page."""
    created_at: int
    created_by: str = ""
    changed_at: int

    @property
    def has_ended(self) -> bool:
        """Whether nobody works on it any more; a failed one can be resumed."""
        return self.state in ENDED


class Jobs(Protocol):
    """The jobs of a store, as operations reach them."""

    def create(
        self, workspace: str, kind: str, id: str, params: dict[str, Any], *, by: str, due_at: int = 0,
        writes: Sequence[Put | Delete | Check] = (),
    ) -> Job:  # fmt: skip
        """A job that begins at an instant (0: now), committed with further writes; one that exists alike is returned.

        Raises `Conflict` for an id under which another job exists, or if a condition of ``writes`` does not hold.
        """
        ...

    def find(self, workspace: str, id: str) -> Job | None:
        """A job of a workspace; None if there is none."""
        ...

    def get(self, workspace: str, id: str) -> Job:
        """A job of a workspace; raises `NotFound`."""
        ...

    def page(self, workspace: str, before: str = "", limit: int = 100) -> tuple[list[Job], str]:
        """Jobs of a workspace, the newest first, and the cursor to go on behind; empty at the end."""
        ...

    def pause(self, workspace: str, id: str) -> Job:
        """Stop a job after the page that it is at, until it is resumed. Raises `Conflict` for one that has ended."""
        ...

    def resume(self, workspace: str, id: str) -> Job:
        """Go on with a job that was paused or has failed. Raises `Conflict` for one that was cancelled."""
        ...

    def cancel(self, workspace: str, id: str) -> Job:
        """Stop a job for good after the page that it is at. Raises `Conflict` for one that is done."""
        ...
