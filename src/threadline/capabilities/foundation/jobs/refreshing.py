"""A `Refresh` as a job: everybody is looked at again after definitions have changed, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from threadline.capabilities.foundation.jobs.operations import JobView, job_view
from threadline.kernel.applied import IndexPart
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.operation import Context, Group, NoParams, Operation, Refresh
from threadline.kernel.ports import Ports
from threadline.kernel.store import Delete, Put
from threadline.kernel.time import HOUR, SECOND

ELSEWHERE_SECONDS = 10
"""How long a page waits where it came to a process that goes by other definitions than those of the job."""


def refresh_by_job(group: Group, refresh: Refresh, summary: str, done: str) -> list[Any]:
    """The operation that begins the job, and the job's kind; ``done`` is what the audit log says of a call."""
    kind = f"{refresh.name}_refresh"
    operation = Operation(
        name=kind,
        group=group,
        summary=summary,
        done=(done,),
        params=NoParams,
        result=JobView,
        run=partial(_begin, refresh),
        method="POST",
        path=f"/v1/{refresh.name}/refresh",
        scope="admin",
    )
    return [operation, JobKind(kind, partial(_step, refresh))]


def _begin(refresh: Refresh, context: Context, params: NoParams) -> JobView:
    kind = f"{refresh.name}_refresh"
    return begun(context, kind, kind, {"definitions": context.engine.maintenance.filled_as([IndexPart(refresh.name)])})


def begun(
    context: Context,
    kind: str,
    id: str,
    about: dict[str, Any],
    first: Callable[[str], Sequence[Put | Delete]] = lambda id: (),
) -> JobView:
    """The job that does this now; a new one, with the first writes of its id, if the one before has ended."""
    jobs = context.engine.jobs
    for number in count(1):
        job = jobs.find(context.workspace, f"{id}.{number}")
        if job is None or (not job.has_ended and job.params == about):
            break
    id = f"{id}.{number}"
    return job_view(job or jobs.create(context.workspace, kind, id, about, by=context.source, writes=first(id)))


def _step(refresh: Refresh, engine: Ports, job: Job, limit: int) -> Step:
    maintenance = engine.maintenance
    if (later := elsewhere(engine, job, maintenance.filled_as([IndexPart(refresh.name)]))) is not None:
        return later
    people, following = refresh.page(engine, job.cursor, limit)
    maintenance.note_refreshed(refresh.name, following)
    return Step(following, {"people": people}, finished=not following)


def elsewhere(engine: Ports, job: Job, in_force: str) -> Step | None:
    """The page of a job that has come to a process that goes by other definitions.

    While servers are replaced one by one, those with the definitions of before would bring everybody back. A job that
    has begun waits for one that can go on, however long it has run: given up half-way, nobody would be looked at again.
    """
    now = engine.recorder.clock()
    if job.params["definitions"] == in_force:
        return None
    if now - job.created_at > HOUR and not engine.maintenance.stale():
        return Step(refused="the definitions that were to be applied are in force no more: others are filled")
    waits_for = "a process with the definitions that it was begun under"
    return Step(job.cursor, due_at=now + ELSEWHERE_SECONDS * SECOND, waits_for=waits_for)
