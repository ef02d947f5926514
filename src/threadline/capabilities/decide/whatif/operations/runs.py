"""A what-if as callers run it: started, watched, cancelled, resumed."""

from __future__ import annotations

from itertools import count
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import what_if_results
from threadline.capabilities.decide.whatif.job import JOB_KIND, first_writes, progress_of, save
from threadline.capabilities.decide.whatif.simulation import Asked, Simulation, prepare
from threadline.capabilities.decide.whatif.views import WhatIfView, view
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.job import Job
from threadline.kernel.operation import Choice, Context, Group, Params, operation

WHAT_IF_GROUP = Group("what_if", "Try a rule or definitions on history.")

WhatIfId = Annotated[str, Meta(description="The id of a what-if.", min_length=1, max_length=64)]
Note = Annotated[str, Meta(description="What it is for; saved with the result.", max_length=1_000)]


class WhatIfParams(Asked, kw_only=True):
    """What is tried, on which history, and where the result goes."""

    save: Annotated[
        bool, Meta(description="Save the result, so that it can be compared, and an activation can require it.")
    ] = False
    note: Note = ""
    wait: Annotated[
        bool,
        Meta(
            description="Run it while the caller waits, one at a time, and answer its result; always so in Python. "
            "Otherwise it is a job, which survives restarts."
        ),
    ] = False


@operation(
    "POST /v1/whatif",
    WHAT_IF_GROUP,
    done=(
        "Tried the rule {rule} on history",
        "Tried definitions on history",
    ),
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    choices=(Choice(("start", "since")), Choice(("rule", "definitions"), required=True)),
    needs=(("version", "rule"), ("content", "rule"), ("against", "rule")),
    example=WhatIfParams(rule="risk-score", version=4, since="90d"),
)
def run(context: Context, params: WhatIfParams) -> WhatIfView:
    """Try a rule or definitions on history, in a sandbox, and show what would have been different."""
    given = {name: getattr(params, name) for name in Asked.__struct_fields__}
    simulation = prepare(context, Asked(**given))
    # Who calls from Python has perhaps nobody who works on jobs.
    if params.wait or context.source_type == "direct":
        return _waited_for(context, simulation, params)
    jobs = context.engine.jobs
    id, job = _free(context, simulation.id)
    if job is None:
        writes = first_writes(context, id, simulation, save=params.save, note=params.note)
        job = jobs.create(context.workspace, JOB_KIND, id, {}, by=context.source, writes=writes)
    progress = progress_of(context, job)
    if params.save and not progress.save:
        raise Conflict(f"what-if {id} was started without `save`; ask again when it is done")
    return progress.view


def _free(context: Context, id: str) -> tuple[str, Job | None]:
    """The id under which a what-if begins, or the job of the same question that has not ended yet, with its own id.

    What was done is done again: events of that range may have come since.
    """
    for number in count(1):
        name = id if number == 1 else f"{id}.{number}"
        job = context.engine.jobs.find(context.workspace, name)
        if job is None or not (job.has_ended or job.state == "paused"):
            return name, job
    raise AssertionError("numbers do not end")


def _waited_for(context: Context, simulation: Simulation, params: WhatIfParams) -> WhatIfView:
    done = context.engine.simulations.run(simulation.pages)
    if params.save:
        save(context, simulation, params.note)
    return view(simulation, "done", done.people, done.events, saved=params.save)


class WhatIfOf(Params, kw_only=True):
    """Which what-if."""

    id: WhatIfId


@operation(
    "GET /v1/whatif/{id}",
    WHAT_IF_GROUP,
    example=WhatIfOf(id="0123456789abcdef0123456789abcdef"),
    ended=lambda what_if: what_if.state != "running",
)
def status(context: Context, params: WhatIfOf) -> WhatIfView:
    """Show a what-if: its progress, and its result once it is done."""
    job = context.engine.jobs.find(context.workspace, params.id)
    if job is not None and job.kind == JOB_KIND:
        return progress_of(context, job).view
    return msgspec.convert(what_if_results.saved(context, params.id).view, WhatIfView)


def _job(context: Context, id: str) -> Job:
    job = context.engine.jobs.find(context.workspace, id)
    if job is None or job.kind != JOB_KIND:
        raise NotFound(f"there is no what-if {id!r} that runs or ran as a job")
    return job


@operation(
    "POST /v1/whatif/{id}/cancel",
    WHAT_IF_GROUP,
    done=("Cancelled a what-if",),
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=WhatIfOf(id="0123456789abcdef0123456789abcdef"),
)
def cancel(context: Context, params: WhatIfOf) -> WhatIfView:
    """Cancel a what-if: it stops where it was last noted, keeps its counts, and can be resumed."""
    job = _job(context, params.id)
    # Paused and not cancelled as a job: it can be resumed.
    return progress_of(context, job if job.has_ended else context.engine.jobs.pause(context.workspace, job.id)).view


@operation(
    "POST /v1/whatif/{id}/resume",
    WHAT_IF_GROUP,
    done=("Went on with a what-if",),
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=WhatIfOf(id="0123456789abcdef0123456789abcdef"),
)
def resume(context: Context, params: WhatIfOf) -> WhatIfView:
    """Resume a what-if that was cancelled or has failed where it stopped."""
    job = _job(context, params.id)
    if job.state == "done":
        raise Conflict(f"what-if {job.id} is done; only one that was cancelled or has failed goes on")
    return progress_of(context, context.engine.jobs.resume(context.workspace, job.id)).view
