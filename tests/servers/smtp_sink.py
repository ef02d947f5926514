"""Postfix's own `smtp-sink`: a server that takes every mail, or refuses, drops and delays by its options."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers.ports import free_port

PROGRAM = "/usr/sbin/smtp-sink"
"""Where Debian has it; that folder is not on everybody's path."""
USER = "postfix"
START_SECONDS_MAX = 20.0


class Taken(NamedTuple):
    """A mail that the server took."""

    sender: str
    recipient: str
    message: bytes
    """With the line ends of a file."""


class SmtpSink:
    """A running server."""

    def __init__(self, folder: Path, options: tuple[str, ...]) -> None:
        self.port = free_port()
        self._folder = folder
        as_user = ("-u", USER) if os.getuid() == 0 else ()
        command = [PROGRAM, *as_user, *options, "-d", f"{folder}/", f"127.0.0.1:{self.port}", "128"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=(folder / "errors").open("w"))
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            assert self.process.poll() is None, (folder / "errors").read_text()
            assert time.monotonic() < deadline, "smtp-sink does not answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5):
                return True
        except OSError:
            return False

    def taken(self) -> list[Taken]:
        """Every mail so far that was taken to its end."""
        files = sorted(file for file in self._folder.iterdir() if file.name != "errors")
        # A file that the server still writes would be read without its end.
        still_written = {os.path.realpath(each) for each in Path(f"/proc/{self.process.pid}/fd").iterdir()}
        return [_read(file.read_bytes()) for file in files if os.path.realpath(file) not in still_written]


def _read(file: bytes) -> Taken:
    head, _, message = file.partition(b"\nReceived: ")
    fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
    # Three lines of the server's own stand before the message, and an empty one after it.
    message = message.split(b"\n", 3)[3].removesuffix(b"\n")
    paths = [fields[name].partition("<")[2].partition(">")[0] for name in ("X-Mail-Args", "X-Rcpt-Args")]
    return Taken(paths[0], paths[1], message)


@contextmanager
def smtp_sink(*options: str) -> Iterator[SmtpSink]:
    """A server with these options; see `man smtp-sink`. Skips where there is none."""
    if not Path(PROGRAM).exists():
        pytest.skip("smtp-sink is missing, which is part of postfix: `make setup` installs it where it may")
    # Not below the folder of the tests: that is closed to other users, and it runs as one.
    with tempfile.TemporaryDirectory(prefix="threadline-smtp-sink-") as name:
        Path(name).chmod(0o777)
        made = SmtpSink(Path(name), options)
        try:
            yield made
        finally:
            made.process.kill()
            made.process.wait()
