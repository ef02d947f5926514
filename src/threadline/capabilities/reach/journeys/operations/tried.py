"""Journeys tried on everybody's history in the background: a job that counts, and its counts so far."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from threadline.capabilities.foundation.jobs.operations import JobParams, JobView, job_view
from threadline.capabilities.foundation.jobs.refreshing import begun, elsewhere
from threadline.capabilities.reach.journeys.operations import JOURNEYS_GROUP
from threadline.capabilities.reach.journeys.operations.what_if import (
    Asked,
    JourneysWhatIfResult,
    pages_of,
    range_of,
    result_of,
)
from threadline.capabilities.reach.journeys.what_if.tally import Tally
from threadline.kernel.errors import NotFound
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.operation import Context, operation
from threadline.kernel.personal import StoreTable
from threadline.kernel.ports import Ports
from threadline.kernel.store import Key, Put
from threadline.kernel.typed import prepared

JOB_KIND = "journeys_what_if"
PROGRESS = "journeys_what_if"
"""Table: how far the trial of a job has come, and its counts so far."""


class JourneysTried(msgspec.Struct, kw_only=True):
    """How far a trial has come, and what it has counted. It names nobody: ask `journeys.what_if` about some people."""

    job: JobView
    result: JourneysWhatIfResult


@prepared
class _Progress(msgspec.Struct, kw_only=True):
    definitions: str
    start: int
    until: int
    """Events that became known later are not replayed."""
    after: tuple[str, str, str] | None = None
    finished: bool = False
    """The job may not have been told yet that this was the last page."""
    tally: Tally


@operation(
    "POST /v1/journeys/what-if/job",
    JOURNEYS_GROUP,
    done=("Tried journeys on history",),
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=Asked(definitions="journeys: {welcome: {steps: [{send: hello}]}}"),
)
def what_if_in_background(context: Context, params: Asked) -> JobView:
    """Try journeys on everybody's history in a job, which only counts."""
    start, stop = range_of(params, context.now)
    tally = Tally(0, stop)
    pages_of(context.engine, context.workspace, params.definitions, tally, (start, context.now), file=params.file)
    first = _Progress(definitions=params.definitions, start=start, until=context.now, tally=tally)
    about = {"definitions": context.engine.maintenance.fingerprint, "at": context.now}
    return begun(context, JOB_KIND, JOB_KIND, about, lambda id: [_put(context.workspace, id, first)])


@operation(
    "GET /v1/journeys/what-if/{id}",
    JOURNEYS_GROUP,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=JobParams(id="journeys_what_if.1"),
)
def tried(context: Context, params: JobParams) -> JourneysTried:
    """Show what journeys tried in the background would have sent."""
    job = context.engine.jobs.get(context.workspace, params.id)
    if job.kind != JOB_KIND:
        raise NotFound(f"job {params.id!r} tries no journeys")
    progress = _progress_of(context.engine, job)
    return JourneysTried(job=job_view(job), result=result_of(progress.tally, progress.start, {}))


def _step(engine: Ports, job: Job, limit: int) -> Step:
    if (later := elsewhere(engine, job, engine.maintenance.fingerprint)) is not None:
        return later
    progress = _progress_of(engine, job)
    tally, after = progress.tally, None if progress.after is None else Key(*progress.after)
    enough = tally.people + tally.failed + limit
    known = (progress.start, progress.until)
    if not progress.finished:
        for done in pages_of(engine, job.workspace, progress.definitions, tally, known)(after):
            after = done.after
            if tally.people + tally.failed >= enough:
                break
        progress.finished = after is None
        progress.after = None if after is None else (after.table, after.partition, after.sort)
        tally.failures.clear()  # they name people
    totals = {"people": tally.people, "failed": tally.failed}
    writes = [_put(job.workspace, job.id, progress)]
    return Step(job.id, writes=writes, finished=progress.finished, totals=totals)


def _progress_of(engine: Ports, job: Job) -> _Progress:
    item = engine.store.get([Key(PROGRESS, job.workspace, job.id)])[0]
    assert item is not None, "both are written in one commit"
    return msgspec.msgpack.decode(item.value, type=_Progress, dec_hook=_counter)


def _counter(type: Any, value: Any) -> Any:
    return Counter(value)


def _put(workspace: str, id: str, progress: _Progress) -> Put:
    return Put(Key(PROGRESS, workspace, id), msgspec.msgpack.encode(progress))


KIND = JobKind(JOB_KIND, _step)
PROGRESS_TABLE = StoreTable(PROGRESS, "nobody", why="counts of mails that journeys would have sent")
