"""The server under test, in a process of its own, on a file."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from bench.trees import OURS, Tree

START_SECONDS_MAX = 60.0
WRITE_KEY = "bench-write-key"
READ_TOKEN = "bench-read-token"
UNLIMITED = 1_000_000


def unlimited(tree: Tree) -> dict[str, str]:
    """Settings under which a write key may send the world, whose first person does more than anybody may by default.

    What people do is counted all the same. The earlier commit counts nothing by default.
    """
    if tree.path:
        return {}
    return {"PERSON_EVENTS_PER_SECOND": f"{UNLIMITED}", "PERSON_BURST_EVENTS": f"{UNLIMITED}"}


class Server:
    """Runs a tree's server as it ships while its ``with`` block does."""

    def __init__(
        self, path: Path, tree: Tree = OURS, program: Sequence[str] = ("threadline",), **settings: str
    ) -> None:
        self._log_path = path.with_suffix(".log")
        self._command = [sys.executable, "-m", *program, "serve"]
        self._settings = {"STORE": str(path), "WRITE_KEYS": WRITE_KEY, "TOKENS": READ_TOKEN, **settings}
        self._tree = tree
        self.port = _free_port()

    def __enter__(self) -> Server:
        environment = self._tree.environment(PORT=str(self.port), **self._settings)
        self._log = self._log_path.open("wb")
        self._process = subprocess.Popen(self._command, env=environment, stdout=self._log, stderr=subprocess.STDOUT)
        self.process = psutil.Process(self._process.pid)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise RuntimeError(f"the server did not start: {self._log_path.read_text()[-2_000:]}")
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)  # at which it waits for no balancer
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/livez")
            return connection.getresponse().status < 500
        except OSError:
            return False
        finally:
            connection.close()

    @property
    def rss_bytes(self) -> int:
        """Memory of the server and of what it started."""
        return int(sum(process.memory_info().rss for process in (self.process, *self.process.children(recursive=True))))

    def cpu_seconds(self) -> float:
        """CPU used so far by the server and what it started."""
        times = [process.cpu_times() for process in (self.process, *self.process.children(recursive=True))]
        return float(sum(spent.user + spent.system for spent in times))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
