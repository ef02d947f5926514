"""A job as it is stored: durable work across people, which can be watched, paused, resumed and cancelled."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

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
    waits_for: str = ""
    """What the present page waits for; empty where it waits for nothing but its time."""
    created_at: int
    created_by: str = ""
    changed_at: int

    @property
    def waiting(self) -> str:
        """What it waits for now; nothing once it was paused, or has ended."""
        return self.waits_for if self.state == "running" else ""

    @property
    def was_refused(self) -> bool:
        """Whether it has failed because somebody has to decide first, and not at its pages."""
        return self.state == "failed" and not self.failures

    @property
    def has_ended(self) -> bool:
        """Whether nobody works on it any more; a failed one can be resumed."""
        return self.state in ENDED
