"""Jobs as they are stored: created, listed, paused, resumed and cancelled, each a conditional write of its item."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.job import Job, JobState
from threadline.kernel.job_kind import JobKind
from threadline.kernel.store import Batch, Check, Delete, Item, Key, Put, Store
from threadline.kernel.time import Clock, time_key

JOB = "job"
"""Table: the jobs of each workspace by id."""
JOB_CREATED = "job_created"
"""Table: their ids by when they were created."""
JOB_DUE = "job_due"
"""Table: in one partition, by when it is due, each job of any workspace that somebody has to work on."""
DUE = "-"
ID_LENGTH_MAX = 150
_ATTEMPTS = 10
"""Of a change that others are faster than: a page is committed now and then, so it gets through."""


class StoredJob(NamedTuple):
    """A job, and the item that it was read from."""

    item: Item
    job: Job

    @property
    def fence(self) -> Check:
        """Holds as long as nobody has changed the job."""
        return Check(self.item.key, self.item.version)

    def changed(self, job: Job) -> list[Put | Delete]:
        """The writes that put another state of it in place, if nobody was faster."""
        before, after = _due_key(self.job), _due_key(job)
        writes: list[Put | Delete] = [Put(self.item.key, _packed(job), self.item.version)]
        if after is not None and before != after:
            writes.append(Put(after, _packed_name(job)))
        if before is not None and before != after:
            writes.append(Delete(before))
        return writes


class Jobs:
    """The jobs of one store."""

    def __init__(self, store: Store, kinds: Mapping[str, JobKind], clock: Clock) -> None:
        self._store = store
        self._kinds: Container[str] = kinds
        self._clock = clock

    def create(
        self,
        workspace: str,
        kind: str,
        id: str,
        params: dict[str, Any],
        *,
        by: str,
        due_at: int = 0,
        writes: Sequence[Put | Delete | Check] = (),
    ) -> Job:
        """A job that begins at an instant (0: now), committed with further writes; one that exists alike is returned.

        Raises `Conflict` for an id under which another job exists, or if a condition of ``writes`` does not hold.
        """
        if kind not in self._kinds:
            raise InvalidValue(f"there is no kind of job {kind!r}")
        if not 0 < len(id) <= ID_LENGTH_MAX:
            raise InvalidValue(f"the id of a job has 1 to {ID_LENGTH_MAX} characters")
        job, made = new_job(workspace, kind, id, params, by, self._clock(), due_at)
        if self._store.commit([Batch(writes=[*made, *writes])])[0] is None:
            return job
        existing = self.find(workspace, id)
        if existing is None or (existing.kind, existing.params) != (kind, params):
            raise Conflict(f"there is another job {id!r}, or what it builds on has changed; read it again")
        return existing

    def find(self, workspace: str, id: str) -> Job | None:
        """A job of a workspace; None if there is none."""
        stored = stored_job(self._store, workspace, id)
        return None if stored is None else stored.job

    def get(self, workspace: str, id: str) -> Job:
        """A job of a workspace; raises `NotFound`."""
        return self._existing(workspace, id).job

    def page(self, workspace: str, before: str = "", limit: int = 100) -> tuple[list[Job], str]:
        """Jobs of a workspace, the newest first, and the cursor to go on behind; empty at the end."""
        rows = self._store.query(JOB_CREATED, workspace, stop=before or None, limit=limit, reverse=True)
        items = self._store.get([Key(JOB, workspace, row.value.decode()) for row in rows])
        return [_read(item) for item in items if item is not None], rows[-1].key.sort if len(rows) == limit else ""

    def pause(self, workspace: str, id: str) -> Job:
        """Stop a job after the page that it is at, until it is resumed. Raises `Conflict` for one that has ended."""
        return self._moved(workspace, id, "paused", {"scheduled", "running"})

    def resume(self, workspace: str, id: str) -> Job:
        """Go on with a job that was paused or has failed. Raises `Conflict` for one that was cancelled."""
        return self._moved(workspace, id, "running", {"paused", "failed"})

    def cancel(self, workspace: str, id: str) -> Job:
        """Stop a job for good after the page that it is at. Raises `Conflict` for one that is done."""
        return self._moved(workspace, id, "cancelled", {"scheduled", "running", "paused", "failed"})

    def _existing(self, workspace: str, id: str) -> StoredJob:
        stored = stored_job(self._store, workspace, id)
        if stored is None:
            raise NotFound(f"there is no job {id[:ID_LENGTH_MAX]!r}")
        return stored

    def _moved(self, workspace: str, id: str, state: JobState, before: Container[str]) -> Job:
        for _ in range(_ATTEMPTS):
            stored = self._existing(workspace, id)
            job = stored.job
            if job.state == state:
                return job
            if job.state not in before:
                raise Conflict(f"job {id!r} is {job.state}, and cannot become {state}")
            started: JobState = "running" if job.cursor else "scheduled"
            after = replace(
                job,
                state=started if state == "running" else state,
                failures=0,
                changed_at=self._clock(),
                problem="" if state == "running" else job.problem,
            )
            if self._store.commit([Batch(writes=stored.changed(after))])[0] is None:
                return after
        raise Conflict(f"job {id!r} changes all the time; try again")


def new_job(
    workspace: str, kind: str, id: str, params: dict[str, Any], by: str, now: int, due_at: int = 0
) -> tuple[Job, list[Put]]:
    """A job that begins at an instant (0: now), and the writes that create it unless there is one of this id."""
    job = Job(
        id=id,
        workspace=workspace,
        kind=kind,
        params=params,
        due_at=due_at or now,
        created_at=now,
        created_by=by,
        changed_at=now,
    )
    due = _due_key(job)
    assert due is not None, "a new job is due"
    return job, [
        Put(Key(JOB, workspace, id), _packed(job), 0),
        Put(due, _packed_name(job)),
        Put(Key(JOB_CREATED, workspace, f"{time_key(now)}.{id}"), id.encode()),
    ]


def stored_job(store: Store, workspace: str, id: str) -> StoredJob | None:
    """A job and its item; None if there is none."""
    item = store.get([Key(JOB, workspace, id)])[0] if id else None
    return None if item is None else StoredJob(item, _read(item))


def named_by(due: Item) -> tuple[str, str]:
    """Workspace and id of the job that an item of `JOB_DUE` stands for."""
    workspace, id = msgspec.msgpack.decode(due.value, type=tuple[str, str])
    return workspace, id


def _due_key(job: Job) -> Key | None:
    """Where a job waits for somebody to work on it; None if nobody has to."""
    if job.state not in ("scheduled", "running"):
        return None
    return Key(JOB_DUE, DUE, f"{time_key(job.due_at)}.{job.workspace}.{job.id}")


def _packed_name(job: Job) -> bytes:
    return msgspec.msgpack.encode((job.workspace, job.id))


def _packed(job: Job) -> bytes:
    return msgspec.msgpack.encode(job)


def _read(item: Item) -> Job:
    return msgspec.msgpack.decode(item.value, type=Job)
