"""Jobs as callers read and steer them."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, checked_cursor
from threadline.kernel.disclosure import FREE, SENTENCE, not_personal
from threadline.kernel.job import Job, JobState
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, Params, operation

JOBS_GROUP = Group("jobs", "Long work in the background: progress, pause, cancel.")

JobId = Annotated[str, Meta(description="The id of a job.", min_length=1, max_length=150)]
_CURSOR = re.compile(r"[0-9a-f]{16}\..{1,150}")


@key_fields("kind", "state", "problem", "id")
@not_personal
class JobView(msgspec.Struct, kw_only=True):
    """A job and how far it has come."""

    id: str
    kind: str
    state: JobState
    counts: Annotated[
        dict[str, int], Meta(description="Progress by names of the kind; `done` of `total` where these are known.")
    ]
    due_at: Annotated[Instant, Meta(description="It is not worked on before this instant.")]
    failures: Annotated[int, Meta(description="Failures of the present page in a row; after 5 the job has failed.")]
    refused: Annotated[
        bool,
        Meta(description="Whether it has failed at once because somebody has to decide first; `problem` says what."),
    ] = False
    problem: Annotated[str, Meta(description="The last failure; empty if the last page was done."), SENTENCE]
    waits_for: Annotated[
        str, Meta(description="What it waits for, such as a segment that is being filled; empty: nothing but `due_at`.")
    ] = ""
    params: Annotated[dict[str, Any], FREE]
    created_at: Instant
    created_by: str
    changed_at: Instant


class JobParams(Params, kw_only=True):
    """Which job."""

    id: JobId


class JobsParams(Page, kw_only=True):
    """Which page."""


class JobsPage(msgspec.Struct, kw_only=True):
    """Jobs, the newest first."""

    jobs: list[JobView]
    next: Next = ""


def job_view(job: Job) -> JobView:
    """A job in the form in which it is read."""
    return JobView(
        id=job.id,
        kind=job.kind,
        state=job.state,
        counts=job.counts,
        due_at=instant(job.due_at),
        failures=job.failures,
        refused=job.was_refused,
        problem=job.problem,
        waits_for=job.waiting,
        params=job.params,
        created_at=instant(job.created_at),
        created_by=job.created_by,
        changed_at=instant(job.changed_at),
    )


def has_ended(view: JobView) -> bool:
    """Whether nobody works on a job any more."""
    return view.state in ("done", "failed", "cancelled")


@operation("GET /v1/jobs", JOBS_GROUP, example=JobsParams(limit=20))
def list_(context: Context, params: JobsParams) -> JobsPage:
    """List jobs, the newest first."""
    cursor = checked_cursor(params.cursor, _CURSOR)
    jobs, following = context.engine.jobs.page(context.workspace, cursor, params.limit)
    return JobsPage(jobs=list(map(job_view, jobs)), next=following)


@operation("GET /v1/jobs/{id}", JOBS_GROUP, example=JobParams(id="broadcast.spring-sale"), ended=has_ended)
def show(context: Context, params: JobParams) -> JobView:
    """Show a job and how far it has come."""
    return job_view(context.engine.jobs.get(context.workspace, params.id))


@operation(
    "POST /v1/jobs/{id}/pause",
    JOBS_GROUP,
    done=("Paused the job {id}",),
    scope="admin",
    example=JobParams(id="broadcast.spring-sale"),
)
def pause(context: Context, params: JobParams) -> JobView:
    """Stop a job after the page that it is at, until it is resumed."""
    return job_view(context.engine.jobs.pause(context.workspace, params.id))


@operation(
    "POST /v1/jobs/{id}/resume",
    JOBS_GROUP,
    done=("Went on with the job {id}",),
    scope="admin",
    example=JobParams(id="broadcast.spring-sale"),
)
def resume(context: Context, params: JobParams) -> JobView:
    """Go on with a job that was paused or has failed."""
    return job_view(context.engine.jobs.resume(context.workspace, params.id))


@operation(
    "POST /v1/jobs/{id}/cancel",
    JOBS_GROUP,
    done=("Cancelled the job {id}",),
    scope="admin",
    example=JobParams(id="broadcast.spring-sale"),
)
def cancel(context: Context, params: JobParams) -> JobView:
    """Stop a job for good after the page that it is at."""
    return job_view(context.engine.jobs.cancel(context.workspace, params.id))
