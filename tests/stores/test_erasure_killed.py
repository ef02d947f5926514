"""Erasing is killed again and again: each event is whole or erased, and a repetition finishes it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests import forked
from tests.servers import postgres
from tests.servers.dynamodb import ministack
from tests.stores.erasing_worker import CHUNK, EVENTS, is_to_go, opened
from threadline.kernel.store import Batch, LogEntry, Store, erased, feed_pages, is_erased
from threadline.testing.store_cases import entry

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("THREADLINE_TEST_ERASURE_KILLS", "2"))
MADE: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: str(folder / "store.db"),
    "postgres": lambda folder: postgres.server("18").made(postgres.schema_of(folder)),
    "dynamodb": lambda folder: ministack().made(folder),
}
ENTRIES = [entry(number, f"{number % 7 + 1:02x}" * 16, at=number * 7 % 90) for number in range(1, EVENTS + 1)]
LEFT = [erased(one.id) if is_to_go(one.sequence) else one for one in ENTRIES]


class Worker:
    """The process of `tests/stores/erasing_worker.py`."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        arguments = [forked.python(), "-m", "tests.stores.erasing_worker"]
        self._process = subprocess.Popen(
            arguments, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, place: str, first: int, answers: int, seconds: float) -> tuple[int, bool]:
        """Erase from a number on, killed a moment after so many answers; how far it came, and if it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{place} {first}\n")
        self._process.stdin.flush()
        pid, done = 0, first
        killer: threading.Timer | None = None
        while not (line := self._process.stdout.readline()).startswith("gone"):
            word, _, number = line.strip().partition(" ")
            if word == "pid":
                pid = int(number)
            elif word == "erased":
                done, answers = int(number), answers - 1
            if not answers and killer is None:
                killer = threading.Timer(seconds, _kill, (pid,))
                killer.start()
        if killer is not None:
            killer.cancel()
        return done, line.split()[1] == str(int(signal.SIGKILL))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


@pytest.mark.parametrize("kind", MADE)
def test_erasing_goes_on_after_every_kill(kind: str, tmp_path: Path, worker: Worker, seed: int) -> None:
    random = Random(seed)
    place = MADE[kind](tmp_path)
    store = opened(place)
    assert set(store.commit([Batch(ENTRIES[first : first + 25]) for first in range(0, EVENTS, 25)])) == {None}
    store.close()
    first, kills = 1, 0
    while kills < KILLS * (3 if kind == "sqlite" else 1):
        first = min(first, EVENTS - 10 * CHUNK)
        done, killed = worker.run(place, first, random.randint(1, 11), random.uniform(0, 0.03))
        kills += killed
        store = opened(place)
        assert_whole_or_erased(store, done)
        store.close()
        first = done
    worker.run(place, 1, EVENTS, 0)
    store = opened(place)
    assert [each.entry for each in feed_pages(store)] == LEFT
    assert store.integrity() == []
    store.close()


def assert_whole_or_erased(store: Store, done: int) -> None:
    """Each event is either, those up to a number as they shall be, and all reads are of one mind."""
    found = [each.entry for each in feed_pages(store)]
    for one, was in zip(found, ENTRIES, strict=True):
        assert one == was or (one == erased(was.id) and is_to_go(was.sequence))
    assert found[: done - 1] == LEFT[: done - 1]
    there = [one for one in found if not is_erased(one)]
    ids = [one.id for one in found]
    kept: dict[str, LogEntry] = {}
    for first in range(0, EVENTS, 400):
        kept |= store.find(ids[first : first + 400])
    assert kept == {one.id: one for one in there}
    histories = store.histories(sorted({one.thread for one in ENTRIES}))
    assert sorted(one for each in histories.values() for one in each) == sorted(there)
