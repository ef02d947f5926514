"""A what-if as a process of its own: it sends nothing, changes no byte, and goes on from where it was interrupted."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import threadline
from tests import forked

PEOPLE = 900


class Counter:
    """A server on this machine that counts who calls, and answers each that all is well."""

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/hook"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def counter() -> Iterator[Counter]:
    made = Counter()
    yield made
    made.close()


def definitions(url: str, above: int, version: int) -> str:
    rule = {
        "version": version,
        "conditions": {"field": "event.properties.total", "greater_than": above},
        "actions": [{"store_decision": {"result": "approve"}}, {"tag": {"tag": "big"}}, {"call_webhook": {"url": url}}],
    }
    return json.dumps({"rules": {"big": rule}, "rule_sets": {"paid": {"events": ["paid"], "rules": ["big"]}}})


@pytest.fixture
def folder(tmp_path: Path, counter: Counter) -> Path:
    (tmp_path / "threadline.yaml").write_text(definitions(counter.url, 998, 1))
    (tmp_path / "candidate.yaml").write_text(definitions(counter.url, 10, 2))
    with threadline.open(tmp_path / "threadline.db") as shop:
        told = [
            {"type": "paid", "key": f"{n}", "identifiers": {"user_id": f"u{n}"}, "properties": {"total": n}}
            for n in range(PEOPLE - 1)
        ]
        last = {"type": "paid", "key": "last", "identifiers": {"user_id": "last"}, "properties": {"total": 999}}
        shop.record([*told, last])
    return tmp_path


def environment() -> dict[str, str]:
    here = str(
        Path(threadline.__file__).parents[1]
    )  # the processes have another folder, from which no path is the same
    return {
        **os.environ,
        "PYTHONPATH": here,
        "THREADLINE_WEBHOOK_HTTP": "true",
        "THREADLINE_WEBHOOK_PRIVATE_ADDRESSES": "*",
    }


STRUCK = """
import os, sys
from threadline.surfaces.cli import main, what_if

write, number = what_if._write, int(sys.argv.pop(1))

def struck(*arguments):
    write(*arguments)
    what_if._write = write
    os.kill(os.getpid(), number)

what_if._write = struck
main()
"""
"""The command line, in a process that gets this signal when its first page is kept."""


def start(folder: Path, *arguments: str, program: tuple[str, ...] = ("-m", "threadline")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [forked.python(), *program, *arguments],
        cwd=folder,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def struck(folder: Path, number: int, *arguments: str) -> int:
    """The exit code of a command that was sent a signal after its first page."""
    process = start(folder, *arguments, program=("-c", STRUCK, str(int(number))))
    process.communicate(timeout=120)
    return process.returncode


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    process = start(folder, *arguments)
    said, complained = process.communicate(timeout=120)
    assert process.returncode == code, complained
    return said


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of every file that says anything. Of SQLite's index of its log nothing outlives its processes."""
    found = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
    return {name: data for name, data in found.items() if data or not name.endswith("-wal")}


def test_nothing_is_sent_and_no_byte_is_changed(folder: Path, counter: Counter) -> None:
    before = content(folder)
    assert "threadline.db" in before
    answer = json.loads(run(folder, "what-if", "run", "--definitions", "candidate.yaml", "--json"))
    assert (answer["changed"], answer["people"]) == (PEOPLE - 12, PEOPLE)
    assert {each["action"]: each["new"] for each in answer["actions"]}["call_webhook"] == PEOPLE - 11
    shown = run(folder, "rules", "diff", "candidate.yaml", "--samples", "2")
    assert "+  greater_than: 10" in shown
    assert "event.properties.total" in shown
    assert run(folder, "rules", "diff", "candidate.yaml", "--changed-max", "0.5", code=1)
    assert content(folder) == before
    assert counter.calls == 0
    # The address is one that effects do reach: what was decided live waits for a worker, and there it goes.
    worker = start(folder, "work")
    patience = time.monotonic() + 60
    while counter.calls == 0 and time.monotonic() < patience:
        time.sleep(0.05)
    worker.terminate()
    worker.communicate(timeout=60)
    assert counter.calls == 1


def test_interrupted_it_goes_on_and_comes_to_the_same(folder: Path) -> None:
    # A second that has ended after everything was recorded: the same stretch of time for all runs.
    time.sleep(1)
    stop = ("--stop", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    arguments = ("what-if", "run", "--definitions", "candidate.yaml", "--json")
    checkpoint = folder / "checkpoint.json"
    whole = json.loads(run(folder, *arguments, *stop))
    assert struck(folder, signal.SIGINT, *arguments, *stop, "--checkpoint", str(checkpoint)) == 130
    assert json.loads(checkpoint.read_text())["people"] < PEOPLE
    said = run(folder, *arguments, *stop, "--checkpoint", str(checkpoint))
    assert without_id(json.loads(said)) == without_id(whole)
    assert not checkpoint.exists()


def without_id(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "id"}


def test_a_checkpoint_of_another_question_is_refused(folder: Path) -> None:
    checkpoint = folder / "checkpoint.json"
    asked = ("what-if", "run", "--definitions", "candidate.yaml", "--checkpoint", str(checkpoint))
    assert struck(folder, signal.SIGKILL, *asked) == -signal.SIGKILL
    assert checkpoint.exists(), "the checkpoint is written after each page, and there are several"
    complained = start(folder, "rules", "diff", "candidate.yaml", "--samples", "3", "--checkpoint", str(checkpoint))
    _, said = complained.communicate(timeout=60)
    assert complained.returncode == 1
    assert "checkpoint belongs to another what-if" in said.replace("\n", " ")
