"""Work on jobs: one page after the other, each read by the job's kind and committed here under the job's fence."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from msgspec.structs import replace

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.backoff import Backoff
from threadline.engine.delivery.leases import Leases
from threadline.engine.jobs.jobs import DUE, JOB_DUE, StoredJob, named_by, stored_job
from threadline.engine.recording.validation import FENCED, RecordRequest
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Event
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JOB_FAILURES_MAX, JOB_PAGE, Step
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.sender import rest_seconds
from threadline.kernel.store import Batch, Item
from threadline.kernel.time import CLOCK_SKEW_MAX, SECOND

JOBS_AT_ONCE = 20
"""Due jobs that are looked at in one round; each gets a page, so that none waits for another's end."""
FAILED_SECONDS = 10.0
WRITES_MAX = BATCH_WRITES_MAX - 4
"""Writes of one commit beside the job's own."""

WORKSPACE = "default"
"""The workspace of jobs that nobody has asked for."""

log = logging.getLogger("threadline.work")


class JobWorker:
    """Works on due jobs, in a thread of its own while one is due: a long page must not hold up what is sent."""

    def __init__(self, engine: EngineAccess, leases: Leases) -> None:
        self._engine = engine
        self._kinds = engine.catalogue.job_kinds
        self._leases = leases
        self._backoff = Backoff(engine.store, engine.clock, {JOB_DUE: self._is_believed})
        self._thread: threading.Thread | None = None
        self._standing = [kind for kind in self._kinds.values() if kind.standing]
        """Kinds of which this process has not seen to it yet that there is a job."""

    def start(self, stopping: threading.Event) -> None:
        """Start the thread if a job is due and it is not running; it ends when none is."""
        if (self._thread is None or not self._thread.is_alive()) and self._due(1):
            self._thread = threading.Thread(target=self._run, args=(stopping,), name="threadline-jobs", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait for the page that is being worked on, and give the leases back."""
        if self._thread is not None:
            self._thread.join()
        self._leases.let_go()

    def _run(self, stopping: threading.Event) -> None:
        try:
            while not stopping.is_set() and self.work_due():
                pass
        except Unavailable as error:
            log.warning("jobs wait for the store: %s", error)
            stopping.wait(FAILED_SECONDS)
        except Exception:
            log.exception("work on jobs failed; it goes on in a while")
            stopping.wait(FAILED_SECONDS)

    def work_due(self) -> int:
        """Do a page of every job that is due and that no other process has; returns how many pages were committed."""
        done = 0
        for due in self._due(JOBS_AT_ONCE):
            workspace, id = named_by(due)
            if self._leases.acquire(f"{JOB_DUE}/{workspace}/{id}") is None:
                continue
            stored = stored_job(self._engine.store, workspace, id)
            if stored is None or stored.job.kind not in self._kinds:
                self._backoff.rest(due)  # another process may have the kind
            else:
                done += self._page(stored)
        return done

    def _due(self, limit: int) -> Sequence[Item]:
        while self._standing:
            kind = self._standing[-1].name
            if self._engine.jobs.find(WORKSPACE, kind) is None:
                self._engine.jobs.create(WORKSPACE, kind, kind, {}, by="threadline")
            self._standing.pop()
        return self._backoff.due(JOB_DUE, DUE, limit)

    def _is_believed(self, due: Item, now: int) -> bool:
        """Whether a job can be meant to wait so long: for an instant that was chosen, or after a failure."""
        stored = stored_job(self._engine.store, *named_by(due))
        if stored is None:
            return True
        job = stored.job
        if not job.failures and job.due_at > job.changed_at:
            # A standing job has chosen its next day itself, by the clock that it had then.
            kind = self._kinds.get(job.kind)
            return kind is None or not kind.standing or job.changed_at <= now + CLOCK_SKEW_MAX
        longest = rest_seconds(job.failures - 1) * SECOND if job.failures else 0
        return job.due_at <= now + longest + CLOCK_SKEW_MAX

    def _page(self, stored: StoredJob) -> bool:
        job = stored.job
        try:
            step = self._kinds[job.kind].step(self._engine, job, JOB_PAGE)
            if step.refused:
                return self._committed(stored, Step(), self._refused(job, step.refused))
            rejected = self._recorded(stored, step.events)
        except Unavailable:
            raise  # the store is away: no fault of the job
        except Exception as error:
            log.exception("job %s of workspace %s failed at a page", job.id, job.workspace)
            return self._committed(stored, Step(), self._failed(job, f"{type(error).__name__}: {error}"[:500]))
        return rejected is not None and self._committed(stored, step, self._after(job, step, rejected))

    def _recorded(self, stored: StoredJob, events: Sequence[Event]) -> int | None:
        """How many of these were rejected; None if somebody else has changed the job meanwhile."""
        requests = [RecordRequest(event, "", None, (stored.fence,), known=True) for event in events]
        receipts = self._engine.recorder.record_requests(requests)
        rejected = [receipt.code for receipt in receipts if receipt.status == "rejected"]
        return None if FENCED in rejected else len(rejected)

    def _after(self, job: Job, step: Step, rejected: int) -> Job:
        now = self._engine.clock()
        counts = {**job.counts, **step.totals}
        for name, count in (*step.counts.items(), *((("rejected", rejected),) if rejected else ())):
            counts[name] = counts.get(name, 0) + count
        return replace(
            job,
            state="done" if step.finished else "running",
            cursor=step.cursor,
            counts=counts,
            failures=0,
            problem="",
            waits_for=step.waits_for,
            due_at=step.due_at or min(job.due_at, now),
            changed_at=now,
        )

    def _failed(self, job: Job, problem: str) -> Job:
        now, failures = self._engine.clock(), job.failures + 1
        return replace(
            job,
            state="failed" if failures >= JOB_FAILURES_MAX else job.state,
            failures=failures,
            problem=problem,
            due_at=now + rest_seconds(job.failures) * SECOND,
            changed_at=now,
        )

    def _refused(self, job: Job, problem: str) -> Job:
        return replace(job, state="failed", failures=0, problem=problem[:500], changed_at=self._engine.clock())

    def _committed(self, stored: StoredJob, step: Step, after: Job) -> bool:
        """Commit the rows of a page and then the job; whether nobody was faster."""
        chunks = [step.writes[start : start + WRITES_MAX] for start in range(0, len(step.writes), WRITES_MAX)]
        batches = [Batch(writes=[*chunk, stored.fence]) for chunk in chunks]
        last = Batch(writes=stored.changed(after), builds_on=range(len(batches)))
        return all(refusal is None for refusal in self._engine.store.commit([*batches, last]))
