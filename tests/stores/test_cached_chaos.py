"""Several processes on one store and one Redis, both at their worst: nobody ever reads what is older than is known."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest

from tests.servers import redis as servers
from tests.servers.redis import RedisProcess
from tests.stores.cache_worker import KEYS, SECRET, Newest, Serving
from threadline.stores.memory import MemoryStore

ROOT = Path(__file__).parents[2]
WORKERS = 3
SECONDS = float(os.environ.get("THREADLINE_TEST_CHAOS_SECONDS", "4"))


class Worker:
    """One process at work, and what it says."""

    def __init__(self, arguments: list[str], output: Path) -> None:
        self.output = output
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.stores.cache_worker", *arguments],
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )

    def end(self) -> None:
        """Kill it, whatever it is doing."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


class Stage:
    """The store, Redis and the processes that work on both."""

    def __init__(self, folder: Path, redis: RedisProcess, floor: str, seed: int) -> None:
        store = MemoryStore()
        Serving.register("store", callable=lambda: store)
        server = Serving(("127.0.0.1", 0), SECRET).get_server()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.folder, self.redis, self.random = folder, redis, Random(seed)
        self.known = folder / "known"
        self.known.write_bytes(bytes(KEYS * 8))
        self._arguments = [str(server.address[1]), redis.url, str(self.known), floor]  # type: ignore[index]
        self.ended: list[Worker] = []
        self.workers = [self._started(number) for number in range(WORKERS)]

    def _started(self, number: int) -> Worker:
        seed = str(self.random.getrandbits(32))
        return Worker([*self._arguments, seed], self.folder / f"worker{len(self.ended)}-{number}")

    def kill_a_worker(self) -> None:
        number = self.random.randrange(WORKERS)
        self.workers[number].end()
        self.ended.append(self.workers[number])
        self.workers[number] = self._started(number)

    def stop_a_worker(self) -> None:
        process = self.random.choice(self.workers).process
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.choice((0.05, 0.5, 1.2)))
        process.send_signal(signal.SIGCONT)

    def kill_redis(self) -> None:
        self.redis.kill()
        time.sleep(self.random.choice((0.0, 0.5)))
        self.redis.start()

    def pause_redis(self) -> None:
        self.redis.pause()
        time.sleep(self.random.choice((0.05, 0.3, 0.8)))
        self.redis.resume()

    def empty_redis(self) -> None:
        self.redis.command("FLUSHALL")

    def busy(self) -> bool:
        """Whether the cache had many answers and much was written, or somebody has ended who should not have."""
        if any(worker.process.poll() is not None for worker in self.workers):
            return True
        newest = Newest(str(self.known))
        hits = sum(map(int, re.findall(r"hits (\d+)\n", self._said())))
        return hits > 100 and sum(newest.of(number) for number in range(KEYS)) > 100

    def _said(self) -> str:
        return "".join(worker.output.read_text() for worker in [*self.ended, *self.workers])

    def end(self) -> str:
        for worker in self.workers:
            worker.end()
        return self._said()


@pytest.mark.slow
@pytest.mark.parametrize("floor", ["seen", "acknowledged"])
def test_nobody_reads_what_is_older_than_is_known(tmp_path: Path, seed: int, floor: str) -> None:
    """``seen``: what anybody read or wrote is known to all. ``acknowledged``: what was written, by processes that
    may also stand still for longer than a life of the cache between any two of their steps."""
    with servers.running(tmp_path) as redis:
        stage = Stage(tmp_path, redis, floor, seed)
        trouble = [stage.kill_redis, stage.pause_redis, stage.empty_redis, stage.kill_a_worker]
        if floor == "acknowledged":
            trouble.append(stage.stop_a_worker)
        until = time.monotonic() + SECONDS
        # Until it proves something: the cache was in use, and much was written meanwhile.
        while time.monotonic() < until or not stage.busy():
            assert time.monotonic() < until + 300, stage.end()
            time.sleep(stage.random.uniform(0.3, 2.0))
            stage.random.choice(trouble)()
        said = stage.end()
    assert re.findall(r"OLD.*", said) == []
    assert re.findall(r"(\w+Error.*|Traceback)", said) == []
