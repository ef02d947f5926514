"""``threadline feedback receive``: mails and notifications that come in, from a pipe, a Maildir, LMTP, SMTP or SQS."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.operation import Operation
from threadline.surfaces import operation_calls
from threadline.surfaces.cli.session import Session, store_option, url_option, workspace_option
from threadline.surfaces.log_lines import log_lines
from threadline.surfaces.mail_intake.intake import Intake
from threadline.surfaces.mail_intake.maildir import Maildir
from threadline.surfaces.mail_intake.smtp import serve
from threadline.surfaces.mail_intake.sqs import QueueReader
from threadline.surfaces.worker_process import at_hang_up

EX_DATAERR, EX_TEMPFAIL = 65, 75
"""What mail servers make of the exit of a program that they pipe a mail to: bounce it, or keep it and try again."""


@click.command()
@store_option
@workspace_option
@url_option
@click.option("--maildir", type=click.Path(path_type=Path, file_okay=False), help="Take what comes into this Maildir.")
@click.option("--lmtp", metavar="HOST:PORT", help="Listen for LMTP; port 0 takes a free one.")
@click.option("--smtp", metavar="HOST:PORT", help="Listen for SMTP. It passes nothing on and asks for no login.")
@click.option("--sqs", metavar="URL", help="Read notifications of SES from this queue of Amazon SQS.")
@click.option("--once", is_flag=True, help="End when the Maildir or the queue is empty.")
@click.option("--recipient", multiple=True, help="A recipient of the envelope, for a mail on stdin; may be repeated.")
@click.option("--sender", help="The sender of the envelope, for a mail on stdin.")
@click.pass_obj
def receive(
    session: Session,
    maildir: Path | None,
    lmtp: str | None,
    smtp: str | None,
    sqs: str | None,
    once: bool,
    recipient: tuple[str, ...],
    sender: str | None,
) -> None:
    """Take mails that come back: bounces, complaints and replies. Without an option the mail is read from stdin.

    If a server is running, name it with --url, and put a token with the scope write into THREADLINE_TOKEN. A mail that
    cannot be recorded now stays where it is: in the Maildir, in the queue, or with the mail server, which is asked to
    try again (451, or exit code 75).
    """
    chosen = [way for way in (maildir, lmtp, smtp, sqs) if way is not None]
    if len(chosen) > 1:
        raise click.UsageError("give one of --maildir, --lmtp, --smtp and --sqs; run one process for each")
    if not chosen:
        _from_stdin(session, recipient, sender)
        return
    with _intake(session) as intake:
        log_lines()
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        at_hang_up(lambda *_: stopping.set())
        address = lmtp or smtp
        if address is not None:
            host, _, port = address.rpartition(":")
            if not port.isdigit() or not host:
                raise click.BadParameter("write it like 127.0.0.1:2525")
            serve(intake, host.strip("[]"), int(port), stopping, lambda port: _ready(port=port), lmtp=lmtp is not None)
            return
        _ready()
        if maildir is not None:
            folder = Maildir(maildir, intake)
            folder.take_all() if once else folder.watch(stopping)
        elif sqs is not None:
            queue = QueueReader(sqs, intake)
            if not once:
                queue.watch(stopping)
            while once and queue.take_some(wait_seconds=0):
                pass


def _from_stdin(session: Session, recipients: tuple[str, ...], sender: str | None) -> None:
    raw = sys.stdin.buffer.read()
    try:
        with _intake(session) as intake:
            result = intake.mail(raw, recipients, sender)
    except ThreadlineError as error:
        # A store that is busy or a wrong setting is not the mail's fault; any other exit code would bounce it.
        click.echo(f"{error} {error.hint}".strip(), err=True)
        result = "later"
    if result != "taken":
        raise click.exceptions.Exit(EX_TEMPFAIL if result == "later" else EX_DATAERR)


def _ready(**more: Any) -> None:
    click.echo(msgspec.json.encode({"ready": True, **more, "pid": os.getpid()}))


@contextmanager
def _intake(session: Session) -> Iterator[Intake]:
    """What takes mails: a server, or the store that is opened here for as long as this runs."""
    if session.client() is not None:
        yield Intake(session.run)
        return
    with session.engine() as engine:

        def run(operation: Operation, params: Any) -> Any:
            return operation_calls.run(engine.catalogue.operation(operation.name), session.context(engine), params)

        yield Intake(run)
