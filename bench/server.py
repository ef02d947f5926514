"""The server under test, in a process of its own, on a file."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from bench.threadline_side import serve_command

START_SECONDS_MAX = 60.0


class Server:
    """Runs while its ``with`` block does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.port = _free_port()

    def __enter__(self) -> Server:
        command, environment = serve_command(self._path, self.port)
        self._log = self._path.with_suffix(".log").open("wb")
        self._process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=subprocess.STDOUT)
        self.process = psutil.Process(self._process.pid)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise RuntimeError(f"the server did not start: {self._path.with_suffix('.log').read_text()[-2_000:]}")
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
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
