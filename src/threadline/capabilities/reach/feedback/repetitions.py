"""Fetches that only repeat others: counted in the store, and one event an hour has how many. No loop fills the log."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from threadline.capabilities.reach.feedback.events import MAIL_FETCHED, MAIL_SCANNED, SOURCE
from threadline.kernel.event import Event
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.ports import Ports
from threadline.kernel.store import Batch, Delete, Key, Put
from threadline.kernel.time import HOUR, MINUTE

COUNTING = "mail_fetch_count"
"""Table: by workspace and hour, under the id of the event that is repeated; the version of the item is how often."""
JOB_KIND = "mail_fetches"
_LATE = MINUTE
"""How long after its hour a process may still count."""


def count_only(ports: Ports, workspace: str, like: str, now: int) -> None:
    """Count a fetch like that of an event; after the hour an event has how many."""
    hour = now // HOUR
    job = f"{JOB_KIND}.{hour}"
    if ports.jobs.find(workspace, job) is None:
        ports.jobs.create(workspace, JOB_KIND, job, {"hour": hour}, by=SOURCE, due_at=(hour + 1) * HOUR + _LATE)
    ports.store.commit([Batch(writes=[Put(Key(COUNTING, f"{workspace}/{hour}", like), b"-")])])


def _step(engine: Ports, job: Job, limit: int) -> Step:
    hour: int = job.params["hour"]
    items = engine.store.query(COUNTING, f"{job.workspace}/{hour}", limit=limit)
    known = engine.log.events(job.workspace, [item.key.sort for item in items])
    events = [
        # No identity of its own: an event that was erased meanwhile takes the count of its repetitions with it.
        replace(
            like.event,
            key=f"{like.id}/{hour}",
            source=SOURCE,
            source_type="internal",
            **_counted(like.event, item.version),
            occurred_at=(hour + 1) * HOUR,
            marks=(),
            received_at=engine.recorder.clock(),
        )
        for item in items
        if (like := known.get(item.key.sort)) is not None
    ]
    counts = {"done": sum(item.version for item in items)}
    return Step(events=events, writes=[Delete(item.key) for item in items], counts=counts, finished=len(items) < limit)


def _counted(event: Event, count: int) -> dict[str, Any]:
    """The type and the properties of the event that has how often a fetch was repeated; it is no open and no click."""
    is_machine = event.properties.get("machine") is True
    properties = {"fetch": "opened", **event.properties, "count": count}
    if not is_machine:
        properties.pop("machine", None)
    return {"type": MAIL_SCANNED if is_machine else MAIL_FETCHED, "properties": properties}


KIND = JobKind(JOB_KIND, _step)
