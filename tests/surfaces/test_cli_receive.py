"""`threadline feedback receive`: exit codes that mail servers understand, and a server that ends in good order."""

from __future__ import annotations

import io
import json
import signal
import smtplib
import subprocess
import sys
from pathlib import Path

import pytest

import threadline
from tests import forked
from tests.surfaces.cli_stage import call, composed, store

__all__ = ["call", "composed", "store"]

BOUNCE = b"From: MAILER-DAEMON@x.example\r\nSubject: failure notice\r\n\r\n<bob@x.example>:\r\nno such user\r\n"
RECEIVE = ("feedback", "receive")


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounce on stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BOUNCE)))


def rejected(path: Path) -> list[str]:
    """What the rejected log has of mails."""
    with threadline.open(path, readonly=True) as shop:
        return [entry.payload["raw"] for _, entry in shop.engine.rejected.page("default")]


@pytest.mark.usefixtures("piped")
def test_mail_on_stdin_is_taken(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert call(*RECEIVE, "--recipient", "bounce@shop.example", "--sender", "").code == 0
    assert [raw.splitlines()[0] for raw in rejected(store)] == ["From: MAILER-DAEMON@x.example"]


@pytest.mark.usefixtures("piped")
def test_mail_server_is_asked_to_come_again_while_the_store_is_busy(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    with threadline.open(store):
        found = call(*RECEIVE)
    assert found.code == 75
    assert "another process" in found.err


@pytest.mark.usefixtures("piped")
def test_mail_server_is_asked_to_come_again_while_the_definitions_are_wrong(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    (store.parent / "threadline.yaml").write_text("feedback: {topics: [x]}\n")
    found = call(*RECEIVE)
    assert found.code == 75
    assert "must be the ARN of a topic of SNS" in found.err


def test_maildir_is_emptied_once(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    folder = store.parent / "mails"
    for name in ("tmp", "new", "cur"):
        (folder / name).mkdir(parents=True)
    (folder / "new" / "1.x").write_bytes(BOUNCE)
    assert call(*RECEIVE, "--maildir", str(folder), "--once").code == 0
    assert [each.name for each in (folder / "cur").iterdir()] == ["1.x:2,S"]
    assert len(rejected(store)) == 1


@pytest.mark.parametrize("options", [("--lmtp", "x:1", "--smtp", "x:1"), ("--lmtp", "2525"), ("--lmtp", "x:y")])
def test_options_that_make_no_sense_are_refused(store: Path, call, options: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    assert call(*RECEIVE, *options).code == 2


def test_server_of_a_process_takes_mails_until_it_is_told_to_stop(store: Path) -> None:
    command = [forked.threadline(), *RECEIVE, "--lmtp", "127.0.0.1:0", "--file", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        with smtplib.LMTP("127.0.0.1", ready["port"]) as server:
            assert server.sendmail("", ["bounce@shop.example"], BOUNCE) == {}
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert len(rejected(store)) == 1
