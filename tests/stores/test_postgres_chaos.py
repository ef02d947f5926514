"""Laws 1 to 4 on PostgreSQL: eight processes on one database, killed at random, on a server that comes and goes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import msgspec
import psycopg
import pytest

from tests import forked
from tests.laws import staging
from tests.servers import postgres
from tests.stores.postgres_worker import MAIL, SENDING_LEASE_SECONDS, WEEK_LATER, Task, calls, shift_to, told
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.scheduled import OUTBOX, TIMER
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Event, Identifier
from threadline.kernel.identity import MERGED
from threadline.kernel.store import FeedEntry, feed_pages, scan_pages
from threadline.stores.memory import MemoryStore
from threadline.stores.postgres.store import PostgresStore
from threadline.testing.auditor import audit
from threadline.testing.scenarios import plain

ROOT = Path(__file__).parents[2]
WORKERS = 8
SECONDS = float(os.environ.get("THREADLINE_TEST_CHAOS_SECONDS", "5"))
"""Roughly how long the storm lasts: it ends when all is told."""
EVENTS = max(400, round(100 * SECONDS))
PEOPLE = max(60, EVENTS // 10)
"""So many that nobody has more facts of one kind than are kept, which the auditor does not bound."""


class Herd:
    """The processes of `tests/stores/postgres_worker.py`, and what they have said."""

    def __init__(self, task: Task) -> None:
        self.acknowledged = dict.fromkeys(range(task.workers), -1)
        """Worker -> its last call that was answered."""
        self.done: set[int] = set()
        self.failed: list[str] = []
        self.alive: dict[int, int] = {}
        self.kills = 0
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            [forked.python(), "-m", "tests.stores.postgres_worker", msgspec.json.encode(task).decode()],
            cwd=ROOT,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, number, *rest = line.split(maxsplit=2)
            if word == "ack":
                self.acknowledged[int(number)] = int(rest[0])
            elif word == "done":
                self.done.add(int(number))
            elif word == "failed":
                self.failed.append(line)
            elif word == "pid":
                self.alive[int(number)] = int(rest[0])
            elif word == "gone":
                self.alive.pop(int(number), None)

    @property
    def answers(self) -> int:
        """How many calls were answered, of all workers."""
        return sum(last + 1 for last in self.acknowledged.values())

    def order(self, line: str) -> None:
        """Have a process started."""
        number = int(line.split()[1])
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        wait_for(lambda: number in self.alive or number in self.done or bool(self.failed))

    def kill(self, number: int) -> bool:
        """kill -9; whether there was anybody to kill."""
        pid = self.alive.get(number)
        if pid is None:
            return False
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        wait_for(lambda: number not in self.alive)
        self.kills += number not in self.done
        return True

    def close(self) -> None:
        """End all of it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._listener.join(60)


@contextmanager
def herd(task: Task) -> Iterator[Herd]:
    made = Herd(task)
    try:
        yield made
    finally:
        made.close()


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.005)


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    made = postgres.fresh("18")
    yield made
    postgres.end(made)


def task_on(server: postgres.Server, seed: int) -> Task:
    task = Task(server.made("threads"), seed, PEOPLE, EVENTS, WORKERS, 0)
    return msgspec.structs.replace(task, shift=shift_to(task.world().ends_at(EVENTS)))


def follow(url: str, stopping: threading.Event, found: list[FeedEntry]) -> None:
    """Read the feed all the while, through whatever happens."""
    store = PostgresStore(url)
    while not stopping.is_set():
        try:
            found += store.feed(found[-1].cursor if found else "", 17)
        except Unavailable:
            time.sleep(0.1)
    store.close()


def storm(server: postgres.Server, workers: Herd, random: Random, total: int) -> None:
    """Kill processes, end connections and stop the server, until all is told.

    Somebody is killed after every few answers, however fast they come; if none comes, after a while.
    """
    restarts, waiting = [0.3, 0.7], list(range(WORKERS))
    while len(workers.done) < WORKERS and not workers.failed:
        if waiting:  # one after the other: a fast machine would have done everything before the storm begins
            workers.order(f"ingest {waiting.pop(0)} 0")
        enough, until = workers.answers + random.randint(1, 6), time.monotonic() + random.uniform(0.02, 0.2)
        while workers.answers < enough and time.monotonic() < until:
            time.sleep(0.002)
        number = random.choice(sorted(set(range(WORKERS)).difference(workers.done, waiting)) or [0])
        if (workers.kill(number) or number not in workers.alive) and number not in workers.done:
            workers.order(f"ingest {number} {workers.acknowledged[number] + 1}")
        if random.random() < 0.2:
            end_backends(server)
        share = workers.answers / total
        if restarts and share > restarts[0]:
            restarts.pop(0)
            server.stop(random.choice(("fast", "immediate")))
            server.start()


def end_backends(server: postgres.Server) -> None:
    with psycopg.connect(server.url("x").partition("&schema=")[0]) as stranger:
        stranger.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'threadline'")


@pytest.mark.slow
def test_eight_processes_in_a_storm_know_what_is_true(server: postgres.Server, seed: int) -> None:
    task, random = task_on(server, seed), Random(seed)
    followed: list[FeedEntry] = []
    stopping = threading.Event()
    follower = threading.Thread(target=follow, args=(task.url, stopping, followed), daemon=True)
    follower.start()
    with herd(task) as workers:
        storm(server, workers, random, sum(len(calls(task, number)) for number in range(WORKERS)))
        assert workers.failed == []
        assert workers.kills >= WORKERS // 2, "hardly anybody was killed at work"
    store = PostgresStore(task.url)
    on = staging.engine(store, task.clock)
    everything = list(feed_pages(store))
    wait_for(lambda: len(followed) >= len(everything))
    stopping.set()
    follower.join()
    assert followed == everything, "a follower was told the feed otherwise than it is"

    model = staging.tell(MemoryStore(), [told(task)], task.clock)
    assert staging.timeless(on) == staging.timeless(model)
    now = task.clock()
    assert staging.pictures(on, now=now) == staging.readable(audit(map(plain, told(task)), now))
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
    assert store.integrity() == []
    assert_merging_leaves_no_trace(on, random)
    assert_timers_fire_once(task, random, on, model)
    store.close()


def assert_merging_leaves_no_trace(on: Engine, random: Random) -> None:
    before = staging.timeless(on)
    one, other = random.sample(list(on.reader.all_people("default")), 2)
    survivor, _ = on.identity.merge("default", one.id, other.id, request="merge", force=True)
    assert staging.timeless(on) != before
    [merged] = [
        recorded
        for recorded in on.reader.events(on.reader.person("default", survivor), types=frozenset({MERGED}), limit=500)
        if recorded.event.properties["merged"] in (one.id, other.id)
        and recorded.event.properties["survivor"] in (one.id, other.id)
    ]
    on.identity.unmerge("default", merged.id, request="unmerge")
    assert staging.timeless(on) == before


def assert_timers_fire_once(task: Task, random: Random, on: Engine, model: Engine) -> None:
    """A week later all that waited is due; several processes see to it, and one is killed whenever some fired."""

    def waiting() -> int:
        return sum(1 for _ in scan_pages(on.store, TIMER))

    later = msgspec.structs.replace(task, shift=task.shift + WEEK_LATER)
    first = waiting()
    assert first > 10, "this world sets too few timers to show anything"
    with herd(later) as workers:
        for number in range(4):
            workers.order(f"dispatch {number}")
        while ((left := waiting()) or not workers.kills) and not workers.failed:
            enough = max(0, left - random.randint(1, first // 5))
            wait_for(lambda enough=enough: waiting() <= enough or bool(workers.failed))
            number = random.randrange(4)
            if workers.kill(number):
                workers.order(f"dispatch {number}")
        assert workers.failed == []
        assert workers.kills
    model = Engine(model.store, model.catalogue, later.clock)
    while Dispatcher(model, {}, "model").run_once():
        pass
    assert staging.timeless(staging.engine(on.store, later.clock)) == staging.timeless(model)


@pytest.mark.slow
def test_who_is_killed_holding_leases_is_followed_within_the_lease(server: postgres.Server, seed: int) -> None:
    task, random = task_on(server, seed), Random(seed)
    with psycopg.connect(task.url.partition("&schema=")[0], autocommit=True) as box:
        box.execute("CREATE TABLE box (effect text, pid int, at timestamptz DEFAULT clock_timestamp())")
        store = PostgresStore(task.url)
        on = staging.engine(store, task.clock, [MAIL])
        now = task.clock()
        told = [
            Event(type="write", identifiers=(Identifier("user_id", f"user-{n}"),), occurred_at=now, key=f"{n}")
            for n in range(300)
        ]
        assert {receipt.status for receipt in on.recorder.record(told)} == {"accepted"}

        def waiting() -> int:
            return sum(1 for _ in scan_pages(store, OUTBOX))

        killed: list[int] = []
        with herd(task) as workers:
            for number in range(3):
                workers.order(f"send {number}")
            while left := waiting():
                # Somebody is killed after every few that were sent; what the dead have leased is sent after a while.
                enough = max(0, left - random.randint(20, 60))
                wait_for(lambda enough=enough: waiting() <= enough or bool(workers.failed))
                assert workers.failed == []
                number = random.randrange(3)
                pid = workers.alive[number]
                assert workers.kill(number)
                killed.append(pid)
                workers.order(f"send {number}")
        sent = box.execute("SELECT effect, array_agg(pid ORDER BY at) FROM box GROUP BY effect").fetchall()
        pause = box.execute("SELECT max(gap) FROM (SELECT at - lag(at) OVER (ORDER BY at) AS gap FROM box) AS gaps")
        [(longest,)] = pause.fetchall()
    # One that was being sent by somebody when they were killed is sent once more, under the same id, and no other.
    assert len(sent) == len(told)
    again = [pids for _, pids in sent if len(pids) > 1]
    assert all(pid in killed for pids in again for pid in pids[:-1])
    assert len(again) <= len(killed)
    assert longest.total_seconds() < SENDING_LEASE_SECONDS + 20
    outcomes = [page.entry.type for page in feed_pages(store)].count("mail_sent")
    assert outcomes == len(told), "each came back once"
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
    store.close()
