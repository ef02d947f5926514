"""The job of an erasure: it goes on where a process was killed, and with what is too much for one request."""

from __future__ import annotations

from threadline.kernel.erasure import JOB_KIND
from threadline.kernel.errors import NotFound
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.ports import Ports

_STEPS_MAX = 10
"""Steps of an erasure, of so many events each, between two looks at whether the process is to stop."""


def _step(ports: Ports, job: Job, limit: int) -> Step:
    try:
        for _ in range(_STEPS_MAX):
            erasure = ports.erasures.advance(job.workspace, job.params["erasure"])
            if erasure.state == "done":
                break
    except NotFound:
        return Step(finished=True)  # of a copy of this store, done again here, which has no certificate of its own
    counts = {"done": erasure.events, "total": erasure.events_total}
    return Step(cursor="erasing", totals=counts, finished=erasure.state == "done")


KIND = JobKind(JOB_KIND, _step)
