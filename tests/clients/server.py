"""A real server in a process of its own, on a file of its own, that can be killed and started again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from tests.servers.ports import free_port

ROOT = Path(__file__).parents[2]
START_SECONDS = 60
STOP_SECONDS = 60


class Server:
    """`threadline serve` as a user would start it: the keys are those that it prints when the file is new."""

    def __init__(self, file: Path, logs: Path | None = None, **settings: str | float) -> None:
        self.file = file
        self.within: Sequence[str] = ()
        """A program that runs the command that follows it, such as one that sets limits."""
        self._settings = {f"THREADLINE_{name.upper()}": str(value) for name, value in settings.items()}
        self._log = (logs or file.parent) / f"{file.name}.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.write_key = ""
        self.token = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, on the same file and port each time, and wait until it listens."""
        command = [*self.within, sys.executable, "-m", "threadline.surfaces.cli", "serve"]
        command += ["--file", str(self.file), "--port", str(self.port)]
        # A setting that the caller's shell holds would make this another server than the one meant.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("THREADLINE_")}
        environment["PYTHONPATH"] = str(ROOT / "src")
        environment |= {"THREADLINE_DRAIN_SECONDS": "0", **self._settings}
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                command, env=environment, cwd=self.file.parent, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._read_keys(self._process)

    def _read_keys(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        slow = threading.Timer(START_SECONDS, process.kill)
        slow.start()
        said = []
        for line in process.stdout:
            said.append(line)
            found = re.match(r"\s+(write key|admin token)\s+(\S+)", line)
            if found is not None:
                setattr(self, {"write key": "write_key", "admin token": "token"}[found[1]], found[2])
            if line.startswith("{") and json.loads(line).get("ready"):
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(said)}{self.log()}")
        slow.cancel()

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    def ask_to_stop(self) -> None:
        """Send SIGTERM, and do not wait."""
        os.kill(self.pid, signal.SIGTERM)

    def wait_for_end(self) -> None:
        """Wait until it has ended without complaint, as it was asked to."""
        assert self._end(None) == 0, self.log()

    def kill(self) -> None:
        """End it in the middle of whatever it does, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, and see that it does so without complaint."""
        assert self._end(signal.SIGTERM) == 0, self.log()

    def _end(self, how: signal.Signals | None) -> int:
        if self._process is None:
            return 0
        if how is not None:
            self._process.send_signal(how)
        status = self._process.wait(STOP_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return status

    def log(self) -> str:
        """The last of what it wrote to stderr."""
        return self._log.read_text()[-4_000:]

    # --- reading ------------------------------------------------------------------------------

    def get(self, path: str, **params: str | int) -> httpx.Response:
        """An answer of the API, asked with the admin token."""
        return httpx.get(self.url + path, params=params, headers={"Authorization": f"Bearer {self.token}"}, timeout=30)

    def read(self, path: str, **params: str | int) -> dict[str, Any]:
        """An answer that must be good."""
        answer = self.get(path, **params)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        found: dict[str, Any] = answer.json()
        return found

    def person(self, identifier: str) -> dict[str, Any]:
        """All that is known of whom ``kind:value`` names."""
        return self.read(f"/v1/people/{quote(identifier, safe='')}")

    def events(self, identifier: str) -> list[dict[str, Any]]:
        """Every event of a person, oldest first; none of somebody who is not known."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            answer = self.get(f"/v1/people/{quote(identifier, safe='')}/events", order="asc", cursor=cursor)
            if answer.status_code == 404:
                return []
            assert answer.status_code == 200, answer.text
            found += answer.json()["events"]
            cursor = answer.json().get("next", "")
            if not cursor:
                return found

    def message(self, key: str) -> dict[str, Any]:
        """What became of a message."""
        return self.read(f"/v1/messages/{quote(key, safe='')}")

    def rejected(self, word: str) -> list[Mapping[str, Any]]:
        """The newest entries of the rejected log in which a word stands."""
        entries = self.read("/v1/rejected", limit=200)["entries"]
        return [entry for entry in entries if word in json.dumps(entry, ensure_ascii=False)]


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Return as soon as something holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
