"""Law: kill -9 at any instant under load loses nothing that was acknowledged and leaves nothing twice or half."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests import forked
from tests.laws import staging
from threadline.kernel.event import Event, event_id
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios
from threadline.testing.auditor import audit

ROOT = Path(__file__).parents[2]
PEOPLE = 12
BIRTH_SECONDS = (0.001, 0.08)
ANSWERS = (1, 15)
BETWEEN_ANSWERS_SECONDS = (0.0, 0.01)
KILLS = int(os.environ.get("THREADLINE_TEST_KILLS", "20"))
ROUNDS_PER_FILE = 25
EVENTS_PER_FILE = 6_000
"""More than a file's rounds can tell, so that every kill finds the child at work."""


class Ingesting:
    """The process of `tests/laws/ingest.py`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def killed_round(self, path: Path, seed: int, start: int, answers: int, seconds: float) -> set[str]:
        """Let a child tell the history from ``start`` on and kill it; the keys that it acknowledged.

        The time runs from the last of so many answers, however fast they come; with none of them from its birth.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        read = self.process.stdout.readline
        print(path, seed, PEOPLE, EVENTS_PER_FILE, start, file=self.process.stdin, flush=True)
        pid = int(read().removeprefix("pid "))
        acknowledged = {read().split()[1] for _ in range(answers)}
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        while (line := read().strip()) != "gone":
            word, key = line.split()
            assert word == "ack"
            acknowledged.add(key)
        return acknowledged


@contextmanager
def ingesting() -> Iterator[Ingesting]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(
        [forked.python(), "-m", "tests.laws.ingest"],
        cwd=ROOT,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Ingesting(process)
    finally:
        process.kill()
        process.wait()


def one_file(child: Ingesting, path: Path, seed: int, rounds: int) -> int:
    """Kill ``rounds`` times over one file and check it after each; then tell everything. Answers how many had acks."""
    random = Random(seed)
    history = scenarios.history(Random(seed), PEOPLE, EVENTS_PER_FILE)
    ids = {told.key: event_id(told.workspace, told.source, told.key) for told in history}
    acknowledged: set[str] = set()
    busy = 0
    for number in range(rounds):
        start = next(n for n, told in enumerate(history) if told.key not in acknowledged)
        at_work = (seed + number) % 5 != 0
        answers = random.randint(*ANSWERS) if at_work else 0
        seconds = random.uniform(*(BETWEEN_ANSWERS_SECONDS if at_work else BIRTH_SECONDS))
        fresh = child.killed_round(path, seed, max(0, start - 5), answers, seconds)
        acknowledged |= fresh
        busy += bool(fresh)
        store = SqliteStore(path)
        assert store.integrity() == []
        on = staging.engine(store)
        there = store.seen([ids[key] for key in acknowledged])
        assert len(there) == len(acknowledged), f"seed {seed}: an acknowledged event is lost"
        if there:
            staging.assert_log_is_whole(on)
            staging.assert_refold_changes_nothing(on)
        store.close()
    assert len(acknowledged) < len(history), "the child was idle when it was killed: tell more"
    finish(path, history, ids)
    return busy


def finish(path: Path, history: list[Event], ids: dict[str, str]) -> None:
    """Tell everything that was begun once more; what is known is then what is true."""
    store = SqliteStore(path)
    begun = store.seen(list(ids.values()))
    told = history[: max((n for n, one in enumerate(history) if ids[one.key] in begun), default=0) + 1]
    on = staging.tell(store, [told[n : n + 100] for n in range(0, len(told), 100)])
    assert staging.timeless(on) == staging.timeless(staging.tell(MemoryStore(), [told]))
    audited = staging.readable(audit([scenarios.plain(one) for one in told], scenarios.NOW))
    for person, expected in zip(staging.pictures(on), audited, strict=True):
        for each in (person, expected):
            each["features"].pop("engagement_score")  # it is rounded; tests/laws/test_order.py compares it
        assert person == expected
    store.close()


def kill(folder: Path, seed: int, rounds: int) -> None:
    with ingesting() as child:
        busy = 0
        for number in range(0, rounds, ROUNDS_PER_FILE):
            path = folder / f"thread-{number}.db"
            busy += one_file(child, path, seed + number, min(ROUNDS_PER_FILE, rounds - number))
    # A kill before the first acknowledgement proves little; most must come later.
    assert busy > rounds // 2, f"seed {seed}: only {busy} of {rounds} kills met acknowledged events"


@pytest.mark.slow
def test_killed_again_and_again(tmp_path: Path, seed: int) -> None:
    kill(tmp_path, seed + 1, KILLS)
