"""What is read of rows that are written for everybody: an answer says while they are not filled, and a job waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from threadline.kernel.applied import Filling, IndexPart
from threadline.kernel.disclosure import NOT_PERSONAL
from threadline.kernel.job import Job
from threadline.kernel.job_kind import Step
from threadline.kernel.ports import Ports
from threadline.kernel.time import SECOND

FILLING_SECONDS = 5
"""How long a page waits for rows that are being filled before it looks again."""

BeingFilled = Annotated[
    str,
    Meta(
        description="Set while what the answer reads is being filled after a change of definitions: what, and how much "
        "of everybody was looked at. The answer is then of those who are in it so far."
    ),
    NOT_PERSONAL,
]


def being_filled(engine: Ports, parts: Iterable[IndexPart]) -> str:
    """Which of these are not filled as of the definitions in force, and how far each is; empty: all are."""
    return in_words(engine.maintenance.filling(parts))


def in_words(filling: Sequence[Filling]) -> str:
    """Parts that are not filled, and how far each is."""
    return ", ".join(map(str, filling))


def of_filled(engine: Ports, job: Job, parts: Sequence[IndexPart], page: Callable[[], Step]) -> Step:
    """The page of a job that decides something for good by rows that are written for everybody.

    While these are not filled as of the definitions in force, the job waits. They are asked before and after: the mark
    of filled rows is taken back before other definitions change the first of them.
    """
    if (later := _waiting(engine, job, parts)) is not None:
        return later
    step = page()
    return _waiting(engine, job, parts) or step


def _waiting(engine: Ports, job: Job, parts: Sequence[IndexPart]) -> Step | None:
    waits_for = being_filled(engine, parts)
    if not waits_for:
        return None
    return Step(job.cursor, due_at=engine.recorder.clock() + FILLING_SECONDS * SECOND, waits_for=waits_for)
