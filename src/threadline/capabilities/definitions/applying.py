"""Operations that bring everybody up to changed definitions: what is to be done, and doing it by page or as a job."""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.definitions.schema import DEFINITIONS_GROUP
from threadline.capabilities.events.parameters import Next, Page
from threadline.capabilities.jobs.operations import JobView
from threadline.capabilities.jobs.refreshing import begun, elsewhere
from threadline.kernel.disclosure import not_personal
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.operation import Context, NoParams, Operation, always
from threadline.kernel.ports import Maintenance, Ports, WithJobs, WithMaintenance

JOB_KIND = "definitions_apply"

Stale = Annotated[
    list[str],
    Meta(description="What is older than the definitions: `people`, whose states are folded again, then others."),
]


@not_personal
class ChangeView(msgspec.Struct, kw_only=True):
    """A definition that differs from the one that everybody was last brought up to."""

    change: Annotated[str, Meta(description="added, changed or removed.")]
    section: str
    name: Annotated[str, Meta(description="Empty where the section holds no names.")]


@not_personal
class ChangesResult(msgspec.Struct, kw_only=True):
    """What differs, and what has to be done about it."""

    changes: list[ChangeView]
    stale: Stale
    projections: Annotated[list[str], Meta(description="Kinds of states that are folded again for everybody.")]


class ApplyParams(Page, kw_only=True, forbid_unknown_fields=True):
    """From where to go on."""


class ApplyResult(msgspec.Struct, kw_only=True):
    """How far it came. It may be stopped after any call and begun again."""

    step: Annotated[str, Meta(description="What was brought up to date; empty if everything was.")]
    people: Annotated[int, Meta(description="People looked at in this call.")]
    next: Next = ""


class JobNeeds(WithJobs, WithMaintenance, Protocol):
    """What is needed here of the engine."""


def _reload(context: Context[WithMaintenance], params: NoParams) -> ChangesResult:
    return _result(context.engine.maintenance.reload())


def _changes(context: Context[WithMaintenance], params: NoParams) -> ChangesResult:
    return _result(context.engine.maintenance)


def _result(maintenance: Maintenance) -> ChangesResult:
    stale = maintenance.stale()
    return ChangesResult(
        changes=[ChangeView(change=c.change, section=c.section, name=c.name) for c in maintenance.changes()],
        stale=list(stale),
        projections=list(maintenance.changed_projections()) if "people" in stale else [],
    )


def _apply(context: Context[WithMaintenance], params: ApplyParams) -> ApplyResult:
    done = context.engine.maintenance.advance(params.cursor, params.limit)
    return ApplyResult(step=done.step, people=done.people, next=done.next)


def _apply_in_background(context: Context[JobNeeds], params: NoParams) -> JobView:
    fingerprint = context.engine.maintenance.fingerprint
    return begun(context, JOB_KIND, f"{JOB_KIND}.{fingerprint}", {"definitions": fingerprint})


def _step(engine: Ports, job: Job, limit: int) -> Step:
    maintenance = engine.maintenance
    if (later := elsewhere(engine, job, maintenance.fingerprint)) is not None:
        return later
    done = maintenance.advance(job.cursor, limit)
    return Step(done.next, {done.step: done.people} if done.step else {}, finished=not done.next)


KIND = JobKind(JOB_KIND, _step)
CHANGES = Operation(
    name="definitions_changes",
    group=DEFINITIONS_GROUP,
    summary="Show how the definitions in force differ from those that everybody was last brought up to.",
    params=NoParams,
    result=ChangesResult,
    run=_changes,
    is_long=always,
    method="GET",
    path="/v1/definitions/changes",
    scope="admin",
    shown_on=frozenset({"http", "python"}),  # the command line has `apply --dry-run`
)
RELOAD = Operation(
    name="definitions_reload",
    group=DEFINITIONS_GROUP,
    summary="Put the definition files, as they are now, in force in a running server; all of them or none.",
    done=("Loaded the definition files",),
    params=NoParams,
    result=ChangesResult,
    run=_reload,
    is_long=always,
    method="POST",
    path="/v1/definitions/reload",
    scope="admin",
    shown_on=frozenset({"http", "python"}),
)
APPLY = Operation(
    name="definitions_apply",
    group=DEFINITIONS_GROUP,
    summary="Bring a page of people up to the definitions in force; to be repeated until `next` is empty.",
    done=("Brought people up to the definitions",),
    params=ApplyParams,
    result=ApplyResult,
    run=_apply,
    is_long=always,
    method="POST",
    path="/v1/definitions/apply",
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=ApplyParams(),
)
APPLY_IN_BACKGROUND = Operation(
    name="definitions_apply_in_background",
    group=DEFINITIONS_GROUP,
    summary="Bring everybody up to the definitions in force as a job that survives restarts.",
    done=("Brought everybody up to the definitions",),
    params=NoParams,
    result=JobView,
    run=_apply_in_background,
    method="POST",
    path="/v1/definitions/apply/job",
    scope="admin",
    shown_on=frozenset({"http", "python"}),  # the command line has `apply --background`
)
