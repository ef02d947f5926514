"""Jobs: the same result at whatever commit a worker is killed, with two workers, and up to where one is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.mortal import Fate, Killed
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.jobs.jobs import JOB_DUE
from threadline.kernel.errors import Conflict, InvalidValue, NotFound, Unavailable
from threadline.kernel.event import Event, Identifier
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JOB_FAILURES_MAX, JobKind, Step
from threadline.kernel.ports import Ports
from threadline.kernel.store import Key, Put, scan_pages
from threadline.kernel.time import DAY, MINUTE, SECOND
from threadline.stores.memory import MemoryStore

NOW = 1_800_000_000 * SECOND
PEOPLE = 11
PAGE = 3
GREETED = "greeted"


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


def greet(engine: Ports, job: Job, limit: int) -> Step:
    """One event and one row for everybody."""
    people, after = engine.reader.people(job.workspace, job.cursor, limit)
    events = [
        Event(
            type=GREETED,
            identifiers=(person.identifiers[person.id],),
            occurred_at=job.created_at,
            key=f"{job.id}/{person.id}",
            source="threadline.greetings",
            source_type="internal",
            workspace=job.workspace,
        )
        for person in people
    ]
    writes = [Put(Key(GREETED, job.workspace, person.id), b"-") for person in people]
    return Step(after, {"done": len(people)}, events, writes, finished=not after)


class World:
    """A store with people, and an engine that can die and be opened again."""

    def __init__(self, step: Callable[[Ports, Job, int], Step] = greet) -> None:
        self.clock = Clock()
        self.store = MemoryStore()
        self.fate = Fate(self.store)
        values = [
            *discover("threadline.capabilities.profile.people.projection", definitions=None),
            JobKind("greet", step),
        ]
        self.catalogue = Catalogue(values, rules())
        self.reopen()
        events = [
            Event(type="seen", identifiers=(Identifier("user_id", f"p{n}"),), occurred_at=NOW, key=f"{n}")
            for n in range(PEOPLE)
        ]
        assert {receipt.status for receipt in self.engine.recorder.record(events)} == {"accepted"}

    def reopen(self) -> None:
        self.engine = Engine(self.store, self.catalogue, self.clock)
        self.worker = Dispatcher(self.engine, {}, f"worker {self.fate.commits}")

    def create(self, **given: Any) -> Job:
        return self.engine.jobs.create("default", "greet", "all", {}, by="test", **given)

    @property
    def job(self) -> Job:
        return self.engine.jobs.get("default", "all")

    def work(self) -> None:
        while self.worker.run_once():
            pass

    def picture(self) -> Any:
        """Everything that a job leaves behind, apart from when."""
        log = sorted((entry.entry.type, entry.entry.id) for entry in self.store.feed())
        rows = sorted(item.key for item in scan_pages(self.store, GREETED))
        return log, rows, self.job.state, self.job.counts, list(scan_pages(self.store, JOB_DUE))


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", PAGE)
    monkeypatch.setattr(job_worker, "WRITES_MAX", 2)


def finished() -> World:
    world = World()
    world.create()
    world.work()
    return world


def test_every_person_is_worked_on_once_and_the_job_says_so() -> None:
    world = finished()
    log, rows, state, counts, due = world.picture()
    assert [type for type, _ in log].count(GREETED) == len(rows) == PEOPLE
    assert (state, counts, due) == ("done", {"done": PEOPLE}, [])


def test_killed_at_any_commit_the_result_is_that_of_a_job_that_was_not() -> None:
    whole = finished()
    for through in (0, 1, 2, 1_000):
        first = killed = 0
        while True:
            world = World()
            first = world.fate.commits
            world.create()
            world.fate.killed_at, world.fate.through = first + 2 + killed, through
            try:
                world.work()
                break  # it has fewer commits than that
            except Killed:
                killed += 1
            world.clock.now += MINUTE
            world.reopen()
            world.work()
            assert world.picture() == whole.picture(), f"killed at commit {killed}"
        assert killed > 2 * PEOPLE / PAGE


def test_two_workers_in_any_order_do_each_page_once() -> None:
    whole = finished()
    world = World()
    world.create()
    first, other = world.worker, Dispatcher(Engine(world.store, world.catalogue, world.clock), {}, "other")
    for number in range(40):
        (first, other)[number % 3 == 0].run_once()
        world.clock.now += 40 * SECOND  # both leases have run out, so each may take it from the other
    assert world.picture() == whole.picture()


def test_a_page_that_was_read_before_another_worker_went_on_commits_nothing() -> None:
    stale: list[Step] = []

    def step(engine: Ports, job: Job, limit: int) -> Step:
        made = greet(engine, job, limit)
        if not stale:
            stale.append(made)
            world.clock.now += 40 * SECOND
            assert Dispatcher(Engine(world.store, world.catalogue, world.clock), {}, "other").run_once()
        return made

    world = World(step)
    world.create()
    assert world.worker.run_once() == 0
    assert world.job.counts == {"done": PAGE}
    world.clock.now += 40 * SECOND
    world.work()
    assert world.job.counts == {"done": PEOPLE}


def test_nothing_is_recorded_for_a_page_whose_job_was_cancelled_while_it_was_read() -> None:
    def step(engine: Ports, job: Job, limit: int) -> Step:
        if job.cursor:
            engine.jobs.cancel(job.workspace, job.id)
        return greet(engine, job, limit)

    world = World(step)
    world.create()
    world.work()
    log, rows, state, counts, due = world.picture()
    assert [type for type, _ in log].count(GREETED) == len(rows) == PAGE
    assert (state, counts, due) == ("cancelled", {"done": PAGE}, [])
    with pytest.raises(Conflict):
        world.engine.jobs.resume("default", "all")


def test_a_paused_job_goes_on_where_it_was() -> None:
    world = World()
    world.create()
    world.worker.run_once()
    assert world.engine.jobs.pause("default", "all").state == "paused"
    assert world.worker.run_once() == 0
    assert world.engine.jobs.resume("default", "all").state == "running"
    world.work()
    assert world.job.counts == {"done": PEOPLE}


def test_a_scheduled_job_begins_at_its_instant() -> None:
    world = World()
    world.create(due_at=NOW + DAY)
    world.clock.now = NOW + DAY - 1
    assert (world.worker.run_once(), world.job.state) == (0, "scheduled")
    world.clock.now += 1
    assert (world.worker.run_once(), world.job.state) == (1, "running")


def test_a_step_that_always_raises_fails_its_job_with_the_reason_and_can_be_resumed() -> None:
    broken = True

    def step(engine: Ports, job: Job, limit: int) -> Step:
        if broken and job.cursor:
            raise ValueError("no such template")
        return greet(engine, job, limit)

    world = World(step)
    world.create()
    for _ in range(JOB_FAILURES_MAX):
        world.work()
        assert world.job.problem == "ValueError: no such template"
        world.clock.now += DAY
    assert (world.job.state, world.job.counts) == ("failed", {"done": PAGE})
    world.work()
    broken = False
    world.engine.jobs.resume("default", "all")
    world.work()
    assert (world.job.state, world.job.problem, world.job.counts) == ("done", "", {"done": PEOPLE})


def test_a_step_that_refuses_fails_its_job_at_once_without_a_page_and_goes_on_when_resumed() -> None:
    asked: list[str] = []
    undecided = True

    def step(engine: Ports, job: Job, limit: int) -> Step:
        asked.append(job.cursor)
        if undecided and job.cursor:
            return Step("further", {"done": 1}, refused="somebody has to decide")
        return greet(engine, job, limit)

    world = World(step)
    world.create()
    world.work()
    for _ in range(3):
        world.clock.now += DAY
        world.work()
    assert len(asked) == 2, "it is not tried again by itself"
    assert (world.job.state, world.job.was_refused, world.job.problem) == ("failed", True, "somebody has to decide")
    assert world.job.counts == {"done": PAGE}
    undecided = False
    world.engine.jobs.resume("default", "all")
    world.work()
    assert (world.job.state, world.job.problem, world.job.counts) == ("done", "", {"done": PEOPLE})


def test_a_store_that_is_away_fails_no_job() -> None:
    world = World()
    world.create()
    world.worker.run_once()
    world.fate.unavailable = True
    for _ in range(2 * JOB_FAILURES_MAX):
        with pytest.raises(Unavailable):
            world.worker.run_once()
        world.clock.now += MINUTE
    world.fate.unavailable = False
    assert (world.job.state, world.job.failures) == ("running", 0)
    world.work()
    assert world.job.counts == {"done": PEOPLE}


def test_a_job_exists_once_under_its_id_and_only_of_a_known_kind() -> None:
    world = World()
    assert world.create() == world.create(due_at=NOW + DAY)
    with pytest.raises(Conflict):
        world.engine.jobs.create("default", "greet", "all", {"other": True}, by="test")
    with pytest.raises(InvalidValue):
        world.engine.jobs.create("default", "mow", "lawn", {}, by="test")
    with pytest.raises(NotFound):
        world.engine.jobs.get("elsewhere", "all")


def test_jobs_are_listed_newest_first_page_by_page() -> None:
    world = World()
    for number in range(5):
        world.clock.now += 1
        world.engine.jobs.create("default", "greet", f"j{number}", {}, by="test")
    first, cursor = world.engine.jobs.page("default", limit=3)
    rest, end = world.engine.jobs.page("default", cursor, 3)
    assert [job.id for job in (*first, *rest)] == ["j4", "j3", "j2", "j1", "j0"]
    assert end == ""
