"""A what-if as a job: a page at a time by whatever process works on jobs, with its progress beside it in the store."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from threadline.capabilities.decide.rules import what_if_results
from threadline.capabilities.decide.rules.what_if_results import BYTES_MAX, Saved
from threadline.capabilities.decide.whatif.simulation import Asked, Checkpoint, Simulation, prepare
from threadline.capabilities.decide.whatif.views import State, WhatIfView, about, view
from threadline.kernel.errors import Conflict, LimitExceeded
from threadline.kernel.job import Job, JobState
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.operation import Context
from threadline.kernel.ports import Ports
from threadline.kernel.store import Batch, Key, Put
from threadline.kernel.typed import prepared

JOB_KIND = "what_if"
PROGRESS = "what_if_progress"
"""Table: how far each what-if of a workspace has come, by the id of its job, and its result so far."""

STATES: dict[JobState, State] = {
    "scheduled": "running",
    "running": "running",
    "paused": "cancelled",
    "done": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}


@prepared
class Progress(msgspec.Struct, kw_only=True):
    """How far a what-if has come; its item is written before the job's, so a page that was done twice counts once."""

    asked: Asked
    save: bool
    note: str
    checkpoint: Checkpoint
    finished: bool
    view: WhatIfView


@dataclass(frozen=True, slots=True)
class _Asking:
    """The context in which a job asks: its creator's, at the present instant."""

    engine: Ports
    workspace: str
    now: int
    source: str
    source_type: Literal["internal"] = "internal"


def first_writes(context: Context, id: str, simulation: Simulation, *, save: bool, note: str) -> Sequence[Put]:
    """The writes that the job of a what-if begins with."""
    begun = Progress(
        asked=simulation.asked,
        save=save,
        note=note,
        checkpoint=simulation.checkpoint(None, 0, 0),
        finished=False,
        view=view(simulation, "running", 0, 0, events_in_all=context.engine.store.stats().get("log_entries")),
    )
    return [_put(context.workspace, id, begun)]


def progress_of(context: Context, job: Job) -> Progress:
    """How far the what-if of a job has come, in the state that its job is in."""
    item = context.engine.store.get([_key(job.workspace, job.id)])[0]
    assert item is not None, "both are written in one commit"
    progress = progress_from(item.value)
    progress.view.id, progress.view.state, progress.view.problem = job.id, STATES[job.state], job.problem
    progress.view.saved = progress.save and job.state == "done"
    return progress


def save(context: Context, simulation: Simulation, note: str) -> None:
    """Keep the result of a what-if that ran while its caller waited."""
    writes = saved_writes(simulation, simulation.id, note, context.workspace, context.source, context.now)
    if context.engine.store.commit([Batch(writes=writes)])[0] is not None:
        raise Conflict("another process has written the same result at this moment; try again")


def saved_writes(simulation: Simulation, id: str, note: str, workspace: str, by: str, now: int) -> list[Put]:
    """The writes that keep the result of a what-if that is done."""
    counts = simulation.tally.counts
    shown = view(simulation, "done", counts.people + counts.failed, 0, saved=True)
    shown.id = id
    saved = Saved(id=id, at=now, by=by, note=note, about=about(simulation), view=msgspec.to_builtins(shown))
    return what_if_results.writes_of(workspace, saved)


def _step(engine: Ports, job: Job, limit: int) -> Step:
    context = _Asking(engine, job.workspace, engine.recorder.now(), job.created_by)
    progress = progress_of(context, job)
    simulation = prepare(context, progress.asked, progress.checkpoint)
    people, events = progress.checkpoint.people, progress.checkpoint.events
    after = None if progress.checkpoint.after is None else Key(*progress.checkpoint.after)
    enough = people + limit
    for done in () if progress.finished else simulation.pages(after):
        people, events, after = people + done.people, events + done.events, done.after
        if people >= enough:
            break
    finished = after is None
    progress.checkpoint, progress.finished = simulation.checkpoint(after, people, events), finished
    progress.view = view(simulation, "done", people, events, events_in_all=progress.view.events_in_all)
    writes = [_put(job.workspace, job.id, progress)]
    if finished and progress.save:
        writes += saved_writes(simulation, job.id, progress.note, job.workspace, job.created_by, context.now)
    known = {} if progress.view.events_in_all is None else {"total": progress.view.events_in_all}
    totals = {"people": people, "done": events, **known}
    return Step(job.id, writes=writes, finished=finished, totals=totals)


def progress_bytes(progress: Progress) -> bytes:
    """The progress of a what-if as it is stored."""
    return zlib.compress(msgspec.msgpack.encode(progress))


def progress_from(data: bytes) -> Progress:
    """What `progress_bytes` made."""
    return msgspec.msgpack.decode(zlib.decompress(data), type=Progress)


def _put(workspace: str, id: str, progress: Progress) -> Put:
    data = progress_bytes(progress)
    if len(data) > BYTES_MAX:
        raise LimitExceeded("the progress of this what-if is too long to be kept; ask for fewer `samples`")
    return Put(_key(workspace, id), data)


def _key(workspace: str, id: str) -> Key:
    return Key(PROGRESS, workspace, id)


KIND = JobKind(JOB_KIND, _step)
