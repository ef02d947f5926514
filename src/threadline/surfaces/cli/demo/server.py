"""The server that the demo starts: a process of its own, spoken to over HTTP like any other."""

from __future__ import annotations

import base64
import http.client
import os
import secrets
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from threadline.kernel.errors import Unavailable
from threadline.settings import PREFIX

HOST = "127.0.0.1"
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 20
ANSWER_SECONDS_MAX = 60
LOG_LINES_SHOWN = 5


class Server:
    """``threadline serve`` on a file that does not exist yet. A context manager: it ends with the block."""

    def __init__(self, file: Path, log: Path, port: int) -> None:
        self.file = file
        self.write_key = f"wk-{secrets.token_urlsafe(9)}"
        self.token = f"tk-{secrets.token_urlsafe(9)}"
        self.url = ""
        self._port = port
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        program = [sys.executable, "-m", "threadline", "serve"]
        arguments = ["--file", str(self.file), "--host", HOST, "--port", str(self._port)]
        with self._log.open("wb") as log:
            # A session of its own: Ctrl-C in the terminal reaches the demo, and the demo ends the server.
            self._process = subprocess.Popen(
                program + arguments, stdout=subprocess.PIPE, stderr=log, env=self._environment(), start_new_session=True
            )
        try:
            self.url = self._wait_until_ready(self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process in good order, or at once if it will not."""
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def wait(self) -> None:
        """Return when the server has ended by itself, which it should not. Raises `Unavailable`."""
        assert self._process is not None
        self._process.wait()
        raise Unavailable(f"the server has ended by itself{self._last_words()}")

    def client(self, authorization: str) -> Client:
        """A client that shows one of the server's credentials."""
        return Client(self.url, authorization)

    def writer(self) -> Client:
        """A client that may only record."""
        return self.client("Basic " + base64.b64encode(f"{self.write_key}:".encode()).decode())

    def reader(self) -> Client:
        """A client that may ask everything."""
        return self.client(f"Bearer {self.token}")

    def _environment(self) -> dict[str, str]:
        # What is set for the user's own server must not change what the demo shows.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        ours = {"WRITE_KEYS": f"demo={self.write_key}", "TOKENS": f"demo={self.token}", "ACCESS_LOG": "false"}
        ours["DRAIN_SECONDS"] = "0"  # no balancer stands before it
        return environment | {PREFIX + name: value for name, value in ours.items()}

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stdout is not None
        late = threading.Timer(START_SECONDS_MAX, process.kill)
        late.start()
        try:
            for line in process.stdout:
                if line.startswith(b'{"ready":true'):
                    return str(msgspec.json.decode(line)["url"])
        finally:
            late.cancel()
        raise Unavailable(f"the server did not start{self._last_words()}")

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return ": " + "\n".join(lines) if lines else ""


class Client:
    """One connection that stays open, as clients of a server keep theirs."""

    def __init__(self, url: str, authorization: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=ANSWER_SECONDS_MAX)
        self._headers = {"Authorization": authorization}

    def post(self, path: str, content: Any) -> Any:
        """Send a body of JSON and answer what comes back. Raises `Unavailable` for anything but 200."""
        return self._ask("POST", path, msgspec.json.encode(content), {"Content-Type": "application/json"})

    def get(self, path: str) -> Any:
        """Ask for something; as `post`."""
        return self._ask("GET", path, None, {})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        try:
            self._connection.request(method, path, body, self._headers | headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(
                f"the server does not answer {method} {path}: {str(error) or type(error).__name__}"
            ) from None
        if answer.status not in (200, 202):
            raise Unavailable(f"the server answers {answer.status} to {method} {path}: {content[:500].decode()}")
        return msgspec.json.decode(content)


def free(port: int) -> bool:
    """Whether a server could listen on this port."""
    with socket.socket() as probe:
        # As the server does, so that a connection that has just been closed does not count as a server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
