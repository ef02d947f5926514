"""Laws 1 to 4 on DynamoDB's stand-in: several processes, killed at random, on a network that loses and repeats."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from random import Random

import pytest

from tests import forked
from tests.laws import staging
from tests.servers.dynamodb import ministack
from tests.stores.dynamodb_faults import FaultyClient
from tests.stores.dynamodb_worker import EXPIRY_SECONDS
from threadline.kernel.event import event_id
from threadline.kernel.store import FeedEntry, feed_pages
from threadline.kernel.time import system_clock
from threadline.stores.dynamodb.address import parse
from threadline.stores.dynamodb.store import DynamoStore, migrate
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

ROOT = Path(__file__).parents[2]
WORKERS = 3
PEOPLE = 10
FAULT_CHANCE = 0.08
SECONDS = float(os.environ.get("THREADLINE_TEST_CHAOS_SECONDS", "5"))
"""How long the storm lasts; after it everything is told once more in peace."""
EVENTS = max(150, int(12 * SECONDS))


class Worker:
    """One of the processes of `tests/stores/dynamodb_worker.py`: told to tell the history, killed, told again."""

    def __init__(self, url: str, seed: int, kill_seed: int) -> None:
        self.acknowledged: set[str] = set()
        self.kills = 0
        self.failures: list[str] = []
        self._line = f"{url} {seed} {PEOPLE} {EVENTS} {FAULT_CHANCE}\n"
        self._random = Random(kill_seed)
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            [forked.python(), "-m", "tests.stores.dynamodb_worker"],
            cwd=ROOT,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def storm(self, until: float) -> None:
        """Kill and begin anew until the time is over, and until one was killed.

        Once everything is told a child that tells it again is soon done: who was not killed by then is killed sooner.
        """
        while (left := until - time.monotonic()) > 0 or not self.kills:
            self._child(min(self._random.uniform(0.5, 4.0), max(0.5, left)) if left > 0 else self._random.random() / 2)

    def _child(self, seconds: float) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(self._line)
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline().removeprefix("pid "))
        alarm = threading.Timer(seconds, _kill, (pid,))
        alarm.start()
        done = False
        while not (line := self._process.stdout.readline().strip()).startswith("gone"):
            word, _, key = line.partition(" ")
            if word == "ack":
                self.acknowledged.add(key)
            done = done or word == "done"
        alarm.cancel()
        self.kills += line == "gone 9"
        if line not in ("gone 9", "gone 0"):
            self.failures.append(line)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it was done before


class Follower:
    """Reads the feed all the while, over the same bad network, and keeps what it was given."""

    def __init__(self, url: str, seed: int) -> None:
        client = FaultyClient(parse(url), Random(seed), FAULT_CHANCE)
        self.store = DynamoStore(url, system_clock, readonly=True, client=client, expiry_seconds=EXPIRY_SECONDS)
        self.found: list[FeedEntry] = []

    def read(self) -> int:
        page = self.store.feed(self.found[-1].cursor if self.found else "", limit=17)
        self.found += page
        return len(page)

    def follow(self, until: float) -> None:
        while time.monotonic() < until:
            if not self.read():
                time.sleep(0.05)


@pytest.mark.slow
def test_a_storm_loses_and_doubles_nothing(tmp_path: Path, seed: int) -> None:
    url = ministack().url(tmp_path)
    migrate(url)
    workers = [Worker(url, seed, seed + number) for number in range(WORKERS)]
    follower = Follower(url, seed)
    until = time.monotonic() + SECONDS
    tasks = [threading.Thread(target=worker.storm, args=(until,)) for worker in workers]
    tasks.append(threading.Thread(target=follower.follow, args=(until,)))
    for task in tasks:
        task.start()
    for task in tasks:
        task.join(SECONDS + 60)
    for worker in workers:
        worker.close()
    assert [worker.failures for worker in workers] == [[]] * WORKERS
    assert all(worker.kills for worker in workers), "somebody was never killed at work"

    store = DynamoStore(url, system_clock, expiry_seconds=EXPIRY_SECONDS)
    history = scenarios.history(Random(seed), PEOPLE, EVENTS)
    ids = {told.key: event_id(told.workspace, told.source, told.key) for told in history}
    acknowledged = set().union(*(worker.acknowledged for worker in workers))
    assert acknowledged, "nothing was acknowledged in all the storm"
    assert store.seen([ids[key] for key in acknowledged]).keys() == {ids[key] for key in acknowledged}
    settle(store)
    on = staging.engine(store)
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)

    on = staging.tell(store, [history[n : n + 100] for n in range(0, len(history), 100)])
    whole = list(feed_pages(store))
    deadline = time.monotonic() + 120
    while len(follower.found) < len(whole) and time.monotonic() < deadline:
        follower.follow(time.monotonic() + 0.2)
    while len(follower.store.client.faults) < 6:
        follower.read()  # until each kind of fault was met, however few questions there was time for before
    assert follower.found == whole, "a follower saw the feed otherwise than it is"
    assert_threads_in_order(whole)
    # The feed says in which order the world was heard of; told so to one process in peace, it is the same world.
    known = {ids[told.key]: told for told in history}
    arrived = [known[page.entry.id] for page in whole if page.entry.id in known]
    assert staging.whole(on) == staging.whole(staging.tell(MemoryStore(), [[told] for told in arrived]))
    follower.store.close()
    store.close()


def settle(store: DynamoStore) -> None:
    """Wait until the writers that were killed hold up the feed no longer."""
    deadline = time.monotonic() + 80 * EXPIRY_SECONDS
    while store._journal.settled().words:
        assert time.monotonic() < deadline, "a dead writer was never expelled"
        time.sleep(0.1)


def assert_threads_in_order(feed: list[FeedEntry]) -> None:
    last: dict[str, int] = {}
    for page in feed:
        assert page.entry.sequence == last.get(page.entry.thread, 0) + 1
        last[page.entry.thread] = page.entry.sequence
