"""Starting a broadcast, pausing, resuming and cancelling it, and measuring what came of it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Duration
from threadline.capabilities.foundation.jobs.operations import JobView, job_view
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.measuring import MEASURE_KIND
from threadline.capabilities.reach.broadcasts.operations import BROADCASTS_GROUP
from threadline.capabilities.reach.broadcasts.operations.reading import (
    BroadcastParams,
    BroadcastView,
    KnownBroadcast,
    view_of,
)
from threadline.kernel.errors import Conflict
from threadline.kernel.ids import short_hash
from threadline.kernel.operation import Context, Params, always, operation
from threadline.kernel.store import Check
from threadline.kernel.time import parse_duration


@operation(
    "POST /v1/broadcasts/{id}/start",
    BROADCASTS_GROUP,
    done=("Started the broadcast {id}",),
    scope="admin",
    example=BroadcastParams(id="spring-sale"),
)
def start(context: Context, params: BroadcastParams) -> BroadcastView:
    """Start a broadcast: at its time, or at once if it has none."""
    engine, workspace = context.engine, context.workspace
    created = repository.get(engine.store, workspace, params.id)
    id = repository.job_id(params.id)
    if engine.jobs.find(workspace, id) is None:
        due, written = repository.begun(engine.store, workspace, params.id, engine.recorder.clock())
        about = {"broadcast": params.id}
        # A draft that was cancelled, if only by now, never starts.
        free = Check(repository.stopped_key(workspace, params.id), 0)
        engine.jobs.create(
            workspace, repository.JOB_KIND, id, about, by=context.source, due_at=due, writes=(free, *written)
        )
    return view_of(context, created)


@operation(
    "POST /v1/broadcasts/{id}/pause",
    BROADCASTS_GROUP,
    done=("Paused the broadcast {id}",),
    scope="admin",
    example=BroadcastParams(id="spring-sale"),
)
def pause(context: Context, params: BroadcastParams) -> BroadcastView:
    """Pause a broadcast: mails that have not been sent wait until it is resumed."""
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


@operation(
    "POST /v1/broadcasts/{id}/resume",
    BROADCASTS_GROUP,
    done=("Went on with the broadcast {id}",),
    scope="admin",
    example=BroadcastParams(id="spring-sale"),
)
def resume(context: Context, params: BroadcastParams) -> BroadcastView:
    """Go on with a broadcast that was paused or has failed."""
    engine, workspace = context.engine, context.workspace
    created = repository.get(engine.store, workspace, params.id)
    repository.unstop(engine, workspace, params.id)
    job = engine.jobs.find(workspace, repository.job_id(params.id))
    if job is not None and job.state in ("paused", "failed"):
        engine.jobs.resume(workspace, job.id)
    return view_of(context, created)


@operation(
    "POST /v1/broadcasts/{id}/cancel",
    BROADCASTS_GROUP,
    done=("Cancelled the broadcast {id}",),
    scope="admin",
    example=BroadcastParams(id="spring-sale"),
)
def cancel(context: Context, params: BroadcastParams) -> BroadcastView:
    """Cancel a broadcast for good: mails that have not been sent are withdrawn."""
    engine, workspace = context.engine, context.workspace
    created = repository.get(engine.store, workspace, params.id)
    repository.stop(engine, workspace, params.id, "cancelled")
    job = engine.jobs.find(workspace, repository.job_id(params.id))
    if job is not None and job.state != "done":
        engine.jobs.cancel(workspace, job.id)
    return view_of(context, created)


class MeasureParams(Params, kw_only=True):
    """What counts, and for how long after somebody was addressed."""

    id: KnownBroadcast
    event: Annotated[str, Meta(description="The type of event that is a conversion.", min_length=1, max_length=200)]
    within: Duration = "7d"


@operation(
    "POST /v1/broadcasts/{id}/measure",
    BROADCASTS_GROUP,
    done=("Counted {event} after the broadcast {id}",),
    is_long=always,
    scope="admin",
    example=MeasureParams(id="spring-sale", event="purchase_completed"),
)
def measure(context: Context, params: MeasureParams) -> JobView:
    """Start a job that counts, for each variant and the control group, who had an event afterwards."""
    engine, workspace = context.engine, context.workspace
    repository.get(engine.store, workspace, params.id)
    now = engine.recorder.now()
    about = {"broadcast": params.id, "event": params.event, "within": parse_duration(params.within)}
    id = f"measure.{params.id}.{short_hash(params.event, params.within, str(now))[:12]}"
    return job_view(engine.jobs.create(workspace, MEASURE_KIND, id, about, by=context.source))
