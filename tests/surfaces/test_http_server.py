"""The server as a process: its first words, its keys, its end, and who may stand beside it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

import threadline
from tests import forked


class Process:
    """One `threadline serve` on a free port."""

    def __init__(
        self,
        store: Path | str,
        environment: dict[str, str] | None = None,
        terminal: int | None = None,
        python: str | None = None,
    ) -> None:
        command = [python or forked.python(), "-m", "threadline", "serve", "--file", str(store), "--port", "0"]
        if terminal is not None:
            command = ["setsid", "--ctty", *command]  # which makes it the terminal that controls the process
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "THREADLINE_DRAIN_SECONDS": "0", **(environment or {})},
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            start_new_session=terminal is None,
        )
        self.said: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("{"):
                break
        else:
            raise AssertionError(f"the server did not start: {self.process.stderr and self.process.stderr.read()}")
        self.ready: dict[str, Any] = json.loads(self.said[-1])
        self.url: str = self.ready["url"]

    def secret(self, prefix: str) -> str:
        return next(word for line in self.said for word in line.split() if word.startswith(prefix))

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        os.kill(self.ready["pid"], signal_number)
        return self.process.wait(60)


@pytest.fixture
def servers() -> Iterator[list[Process]]:
    made: list[Process] = []
    yield made
    for each in made:
        each.process.kill()
        each.process.communicate()


def track(key: str) -> dict[str, str]:
    return {"userId": "42", "event": "click", "messageId": key}


def test_a_new_store_gets_keys_once(tmp_path: Path, servers: list[Process]) -> None:
    first = Process(tmp_path / "x.db", python=sys.executable)
    servers.append(first)
    assert first.ready["ready"] is True
    assert first.ready["pid"] == first.process.pid
    key, token = first.secret("wk_"), first.secret("tl_")
    assert f"curl {first.url}/v1/track -u {key}:" in "".join(first.said)
    with httpx.Client(base_url=first.url) as client:
        assert client.post("/v1/track", json=track("a"), auth=(key, "")).json()["accepted"] == 1
        bearer = {"Authorization": f"Bearer {token}"}
        assert client.get("/v1/people/user_id:42", headers=bearer).json()["position"] == 1
        assert "threadline_log_position 1\n" in client.get("/metrics", headers=bearer).text
        assert client.get("/readyz").json() == {"status": "ok"}
    assert first.stop() == 0
    second = Process(tmp_path / "x.db", {"THREADLINE_DRAIN_SECONDS": "1000"})  # which Ctrl-C skips
    servers.append(second)
    assert len(second.said) == 1, "keys are told once"
    with httpx.Client(base_url=second.url) as client:
        assert client.post("/v1/track", json=track("a"), auth=(key, "")).json()["duplicates"] == 1
    assert second.stop(signal.SIGINT) == 0


def test_the_end_of_the_terminal_stops_it_in_good_order(tmp_path: Path, servers: list[Process]) -> None:
    ours, theirs = pty.openpty()
    server = Process(tmp_path / "x.db", terminal=theirs, python=sys.executable)
    servers.append(server)
    os.close(theirs)
    os.close(ours)
    assert server.process.wait(60) == 0
    assert not (tmp_path / "x.db-wal").exists(), "the store was closed"


def test_nohup_keeps_it_running(tmp_path: Path, servers: list[Process]) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a process hands on to those that it starts
    try:
        server = Process(tmp_path / "x.db", python=sys.executable)
    finally:
        signal.signal(signal.SIGHUP, before)
    servers.append(server)
    server.process.send_signal(signal.SIGHUP)
    assert httpx.get(f"{server.url}/livez").status_code == 200
    assert server.stop() == 0


def test_keys_in_the_environment_need_no_others(tmp_path: Path, servers: list[Process]) -> None:
    server = Process(tmp_path / "x.db", {"THREADLINE_WRITE_KEYS": "shop=mine-alone", "THREADLINE_TOKENS": "tok-alone"})
    servers.append(server)
    assert len(server.said) == 1
    assert httpx.post(f"{server.url}/v1/track", json=track("a"), auth=("mine-alone", "")).json()["accepted"] == 1
    answer = httpx.get(f"{server.url}/v1/people", headers={"Authorization": "Bearer tok-alone"})
    assert len(answer.json()["people"]) == 1


def test_one_process_writes_and_commands_read_beside_it(tmp_path: Path, servers: list[Process]) -> None:
    store = tmp_path / "x.db"
    server = Process(store, {"THREADLINE_WRITE_KEYS": "mine-alone"})
    servers.append(server)
    httpx.post(f"{server.url}/v1/track", json=track("a"), auth=("mine-alone", ""))
    command = [forked.threadline()]
    told = subprocess.run(
        [*command, "serve", "--file", str(store), "--port", "0"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 1
    assert f"pid {server.ready['pid']}" in told.stderr
    read = subprocess.run(
        [*command, "events", "of", "user_id:42", "--file", str(store)], capture_output=True, text=True, check=False
    )
    assert read.returncode == 0
    assert "click" in read.stdout


def test_a_port_that_is_taken_is_a_message(tmp_path: Path, servers: list[Process]) -> None:
    server = Process(tmp_path / "x.db")
    servers.append(server)
    port = server.url.rpartition(":")[2]
    command = [forked.threadline(), "serve", "--file", str(tmp_path / "y.db"), "--port", port]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert f"127.0.0.1:{port} is already in use; choose another with --port or THREADLINE_PORT" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"THREADLINE_HOST": "192.0.2.1"},
        {"THREADLINE_WEBHOOK_SECRETS": "whsec_short"},
        {"THREADLINE_CACHE": "http://no.redis"},
    ],
)
def test_a_start_that_fails_makes_no_keys(environment: dict[str, str], tmp_path: Path, servers: list[Process]) -> None:
    store = tmp_path / "x.db"
    with pytest.raises(AssertionError, match="the server did not start: Error:"):
        Process(store, environment)
    servers.append(Process(store))
    assert servers[0].secret("wk_")
    assert servers[0].secret("tl_")


def test_keys_are_still_told_after_the_port_was_taken(tmp_path: Path, servers: list[Process]) -> None:
    servers.append(Process(tmp_path / "x.db"))
    command = [forked.threadline(), "serve", "--file", str(tmp_path / "y.db")]
    told = subprocess.run(
        [*command, "--port", servers[0].url.rpartition(":")[2]], capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stdout) == (1, "")
    servers.append(Process(tmp_path / "y.db"))
    assert servers[1].secret("wk_")


def test_a_server_whose_keys_cannot_be_told_says_so_and_ends(tmp_path: Path, servers: list[Process]) -> None:
    command = [forked.threadline(), "serve", "--file", str(tmp_path / "x.db"), "--port", "0"]
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert told.returncode == 1
    assert "No space left" in told.stderr
    assert "Traceback" not in told.stderr


def _send(url: str, name: str, answered: dict[str, int], stop: threading.Event) -> None:
    with httpx.Client(base_url=url, auth=("mine-alone", "")) as client:
        for number in range(100_000):
            key = f"{name}-{number}"
            try:
                answered[key] = client.post("/v1/track", json=track(key)).status_code
            except httpx.TransportError:
                return
            if stop.is_set():
                return


def _under_load(server: Process, end: int) -> tuple[dict[str, int], int]:
    """Send from four clients, end the server in the middle, and answer what each message was told."""
    answered: dict[str, int] = {}
    stop = threading.Event()
    clients = [threading.Thread(target=_send, args=(server.url, f"c{i}", answered, stop)) for i in range(4)]
    for client in clients:
        client.start()
    patience = time.monotonic() + 60
    while len(answered) < 100 and time.monotonic() < patience:
        time.sleep(0.01)
    code = server.stop(end)
    stop.set()
    for client in clients:
        client.join()
    return answered, code


@pytest.mark.parametrize(("end", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_what_was_answered_is_there_once(end: int, code: int, tmp_path: Path, servers: list[Process]) -> None:
    server = Process(tmp_path / "x.db", {"THREADLINE_WRITE_KEYS": "mine-alone"})
    servers.append(server)
    answered, ended = _under_load(server, end)
    assert ended == code
    accepted = {key for key, status in answered.items() if status == 200}
    assert len(accepted) >= 100
    assert set(answered.values()) <= {200, 503}
    with threadline.open(tmp_path / "x.db", readonly=False) as tl:
        kept = [entry.entry.id for entry in _everything(tl)]
        assert len(kept) == len(set(kept))
        recorded = {tl.engine.log.event("default", id).event.key for id in kept}
        assert accepted <= recorded
        assert tl.person("user_id:42").position == len(kept)


def _everything(tl: threadline.Threadline) -> Sequence[Any]:
    found, cursor = [], ""
    while page := tl.engine.log.feed(cursor):
        found += page
        cursor = page[-1].cursor
    return found


_STOPPED_EARLY = """
import os, signal, sys
from threadline.surfaces.http.server import server

configure = server.config

def stopped(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    return configure(*arguments)

server.config = stopped
from threadline.surfaces.cli import main
sys.argv = ["threadline", "serve", "--port", "0"]
main()
"""


def test_a_signal_to_stop_that_comes_before_the_server_listens_is_heard(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED_EARLY], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_requests_are_answered_when_nobody_reads_the_log(tmp_path: Path, servers: list[Process]) -> None:
    process = Process(tmp_path / "x.db", {"THREADLINE_ACCESS_LOG": "true"})
    servers.append(process)
    assert process.process.stderr is not None
    process.process.stderr.close()
    with httpx.Client(base_url=process.url) as client:
        assert [client.get("/livez").status_code for _ in range(3)] == [200] * 3
    process.process.stderr = None
