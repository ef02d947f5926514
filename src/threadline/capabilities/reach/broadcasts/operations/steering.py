"""Starting a broadcast, pausing, resuming and cancelling it, and measuring what came of it."""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Duration
from threadline.capabilities.foundation.jobs.operations import JobView, job_view
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.measuring import MEASURE_KIND
from threadline.capabilities.reach.broadcasts.operations import BROADCASTS_GROUP
from threadline.capabilities.reach.broadcasts.operations.reading import (
    BroadcastId,
    BroadcastParams,
    BroadcastView,
    view_of,
)
from threadline.kernel.errors import Conflict
from threadline.kernel.ids import short_hash
from threadline.kernel.operation import Context, Operation, always
from threadline.kernel.ports import WithRecorder
from threadline.kernel.store import Check
from threadline.kernel.time import parse_duration


class Needs(repository.Needs, WithRecorder, Protocol):
    """What is needed here of the engine."""


def _start(context: Context[Needs], params: BroadcastParams) -> BroadcastView:
    engine, workspace = context.engine, context.workspace
    created = repository.get(engine.store, workspace, params.id)
    id = repository.job_id(params.id)
    if engine.jobs.find(workspace, id) is None:
        due = created.broadcast.begins_at(engine.recorder.clock())
        about = {"broadcast": params.id}
        # A draft that was cancelled, if only by now, never starts.
        free = Check(repository.stopped_key(workspace, params.id), 0)
        engine.jobs.create(workspace, repository.JOB_KIND, id, about, by=context.source, due_at=due, writes=(free,))
    return view_of(context, created)


def _pause(context: Context[Needs], params: BroadcastParams) -> BroadcastView:
    engine, workspace = context.engine, context.workspace
    created = repository.get(engine.store, workspace, params.id)
    job = engine.jobs.find(workspace, repository.job_id(params.id))
    if job is None:
        raise Conflict(f"broadcast {params.id!r} is a draft; there is nothing to pause")
    # The mails first: between the two no further one leaves.
    repository.stop(engine, workspace, params.id, "paused")
    if not job.has_ended:
        engine.jobs.pause(workspace, job.id)
    return view_of(context, created)


def _resume(context: Context[Needs], params: BroadcastParams) -> BroadcastView:
    engine, workspace = context.engine, context.workspace
    created = repository.get(engine.store, workspace, params.id)
    repository.unstop(engine, workspace, params.id)
    job = engine.jobs.find(workspace, repository.job_id(params.id))
    if job is not None and job.state in ("paused", "failed"):
        engine.jobs.resume(workspace, job.id)
    return view_of(context, created)


def _cancel(context: Context[Needs], params: BroadcastParams) -> BroadcastView:
    engine, workspace = context.engine, context.workspace
    created = repository.get(engine.store, workspace, params.id)
    repository.stop(engine, workspace, params.id, "cancelled")
    job = engine.jobs.find(workspace, repository.job_id(params.id))
    if job is not None and job.state != "done":
        engine.jobs.cancel(workspace, job.id)
    return view_of(context, created)


class MeasureParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What counts, and for how long after somebody was addressed."""

    id: BroadcastId
    event: Annotated[str, Meta(description="The type of event that is a conversion.", min_length=1, max_length=200)]
    within: Duration = "7d"


def _measure(context: Context[Needs], params: MeasureParams) -> JobView:
    engine, workspace = context.engine, context.workspace
    repository.get(engine.store, workspace, params.id)
    now = engine.recorder.now()
    about = {"broadcast": params.id, "event": params.event, "within": parse_duration(params.within)}
    id = f"measure.{params.id}.{short_hash(params.event, params.within, str(now))[:12]}"
    return job_view(engine.jobs.create(workspace, MEASURE_KIND, id, about, by=context.source))


MEASURE = Operation(
    name="broadcasts_measure", group=BROADCASTS_GROUP,
    summary="Start a job that counts by arm, holdout included, who had an event after being addressed.",
    done=("Counted {event} after the broadcast {id}",),
    params=MeasureParams, result=JobView, run=_measure,
    is_long=always, method="POST", path="/v1/broadcasts/{id}/measure",
    scope="admin", example=MeasureParams(id="spring-sale", event="purchase_completed"),
)  # fmt: skip
START = Operation(
    name="broadcasts_start", group=BROADCASTS_GROUP,
    summary="Start a broadcast: at its time, or at once if it has none.",
    done=("Started the broadcast {id}",),
    params=BroadcastParams, result=BroadcastView,
    run=_start, method="POST", path="/v1/broadcasts/{id}/start", scope="admin",
    example=BroadcastParams(id="spring-sale"),
)  # fmt: skip
PAUSE = Operation(
    name="broadcasts_pause", group=BROADCASTS_GROUP,
    summary="Pause a broadcast: mails that have not left wait until it is resumed.",
    done=("Paused the broadcast {id}",),
    params=BroadcastParams,
    result=BroadcastView, run=_pause, method="POST", path="/v1/broadcasts/{id}/pause", scope="admin",
    example=BroadcastParams(id="spring-sale"),
)  # fmt: skip
RESUME = Operation(
    name="broadcasts_resume", group=BROADCASTS_GROUP, summary="Go on with a broadcast that was paused or has failed.",
    done=("Went on with the broadcast {id}",),
    params=BroadcastParams, result=BroadcastView, run=_resume, method="POST", path="/v1/broadcasts/{id}/resume",
    scope="admin", example=BroadcastParams(id="spring-sale"),
)  # fmt: skip
CANCEL = Operation(
    name="broadcasts_cancel", group=BROADCASTS_GROUP,
    summary="Cancel a broadcast for ever: mails that have not left are withdrawn.",
    done=("Cancelled the broadcast {id}",),
    params=BroadcastParams,
    result=BroadcastView, run=_cancel, method="POST", path="/v1/broadcasts/{id}/cancel", scope="admin",
    example=BroadcastParams(id="spring-sale"),
)  # fmt: skip
