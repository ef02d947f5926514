"""A kind of job: one declaration of work across people, done page by page and resumable at any kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from threadline.kernel.event import Event
from threadline.kernel.job import Job
from threadline.kernel.ports import Ports
from threadline.kernel.store import Delete, Put

JOB_PAGE = 500
"""People, or whatever a kind works on, of one page."""
JOB_FAILURES_MAX = 5
"""Failures of one page in a row after which a job has failed."""


class Step(NamedTuple):
    """One page of a job. All of it is committed under the job's fence, and the cursor last.

    After a kill the page is done again from the same cursor, so events need keys, and writes values, that depend on
    nothing but the job and what the page is about.
    """

    cursor: str = ""
    counts: Mapping[str, int] = {}
    """Added to the counts of the job, once for each page."""
    events: Sequence[Event] = ()
    """Events to record, about people who have been looked up."""
    writes: Sequence[Put | Delete] = ()
    """Rows to write, in as many commits as it takes."""
    finished: bool = False
    due_at: int = 0
    """When to go on, if not at once."""
    totals: Mapping[str, int] = {}
    """Counts that are set, not added."""
    waits_for: str = ""
    """What the page has to wait for, in words, where nothing of it was done."""
    refused: str = ""
    """Why the job ends here as failed, in words, until somebody decides: nothing of the page was done, and doing it
    again would come to the same."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job. Declared like a policy, and found by discovery."""

    name: str
    step: Callable[[Ports, Job, int], Step]
    """(engine, job, limit) -> the page of at most ``limit`` people from the job's cursor on. It leaves writing to its
    caller, unless what it writes may be written twice, by two processes at once."""
    standing: bool = False
    """Whether there is one from when a process begins to work on jobs, in the workspace ``default`` and under the name
    of the kind: for what is done again and again."""
