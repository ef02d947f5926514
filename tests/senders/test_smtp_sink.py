"""Postfix's `smtp-sink`, a server whose code is not ours: what each of its replies and failures means for a mail."""

from __future__ import annotations

import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.senders.mails import mail
from tests.senders.test_mail_delivery import staged
from tests.senders.test_smtp import UNKNOWN, sender_of, sent
from tests.servers.postfix import postfix
from tests.servers.smtp_sink import SmtpSink, smtp_sink
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, Outcome

pytestmark = pytest.mark.slow
SECONDS_MAX = 30.0
NOBODY = ("-f", "RCPT", "-B", "550 5.1.1 User unknown")
MAILS = 60
ACCEPTED = [
    (),
    ("-p",),
    ("-N", "-E"),
    ("-H", "1"),
    ("-w", "1"),
    ("-e",),
    ("-P",),
    ("-f", "EHLO"),
    ("-p", "-W", "RCPT:1"),
]
"""Options under which a mail arrives: without pipelining, DSN, status codes, ESMTP; behind a PIX; slowly."""
REFUSED: list[tuple[tuple[str, ...], str, str, dict[str, Any]]] = [
    (NOBODY, "mail_bounced", "healthy", {"bounce": "permanent", "code": "5.1.1"}),
    (("-f", "RCPT"), EFFECT_PARKED, "healthy", {"step": "recipient", "code": "500 5.3.0"}),
    (("-f", "MAIL"), EFFECT_PARKED, "failing", {"step": "mail"}),
    (("-f", "DATA"), EFFECT_PARKED, "healthy", {"step": "data"}),
    (("-f", "."), EFFECT_PARKED, "healthy", {"step": "message"}),
    (("-f", "CONNECT"), EFFECT_RETRIED, "failing", {"step": "connect"}),
    (("-r", "MAIL"), EFFECT_RETRIED, "failing", {"step": "mail", "code": "450 4.3.0"}),
    (("-r", "RCPT", "-b", "450 4.2.0 Greylisted"), EFFECT_RETRIED, "healthy", {"step": "recipient"}),
    (("-r", "DATA"), EFFECT_RETRIED, "failing", {"step": "data"}),
    (("-r", "."), EFFECT_RETRIED, "failing", {"step": "message"}),
    (("-q", "CONNECT"), EFFECT_RETRIED, "failing", {}),
    (("-q", "MAIL"), EFFECT_RETRIED, "failing", {}),
    (("-q", "RCPT"), EFFECT_RETRIED, "failing", {}),
    (("-q", "DATA"), EFFECT_RETRIED, "failing", {}),
    (("-Q", "CONNECT"), EFFECT_RETRIED, "failing", {"code": "421 4.0.0"}),
    (("-Q", "RCPT"), EFFECT_RETRIED, "failing", {}),
    (("-Q", "."), EFFECT_RETRIED, "failing", {"step": "message", "code": "421 4.0.0"}),
]


def outcome_of(sink: SmtpSink) -> Outcome | str:
    sender = sender_of(f"smtp://127.0.0.1:{sink.port}?tls=off&timeout=5")
    try:
        return sent(sender, "ana@b.example")
    finally:
        sender.close()


def eventually(found: Callable[[], bool], log: Callable[[], str]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not found():
        assert time.monotonic() < deadline, log()
        time.sleep(0.05)


@pytest.mark.parametrize("options", ACCEPTED, ids=" ".join)
def test_a_mail_arrives_byte_for_byte_whatever_the_server_lacks(options: tuple[str, ...]) -> None:
    with smtp_sink(*options) as sink:
        outcome = outcome_of(sink)
        assert isinstance(outcome, Outcome)
        assert outcome.type == "mail_sent"
        message = mail("ana@b.example").data["message"].replace(b"\r\n", b"\n")
        assert sink.taken() == [("news@shop.example", "ana@b.example", message)]


@pytest.mark.parametrize(("options", "type", "destination", "details"), REFUSED, ids=str)
def test_what_a_refusal_or_a_lost_connection_means(
    options: tuple[str, ...], type: str, destination: str, details: dict[str, Any]
) -> None:
    with smtp_sink(*options) as sink:
        outcome = outcome_of(sink)
        assert isinstance(outcome, Outcome)
        assert (outcome.type, outcome.destination) == (type, destination)
        assert details.items() <= outcome.properties.items()


def test_a_refusal_in_the_middle_of_a_message_is_read_though_the_connection_ended_with_it() -> None:
    with smtp_sink("-A", "0") as sink:
        for _ in range(20):
            outcome = outcome_of(sink)
            assert isinstance(outcome, Outcome)
            assert (outcome.type, outcome.destination) == ("mail_bounced", "healthy")
            assert {"bounce": "transient", "code": "550"}.items() <= outcome.properties.items()


@pytest.mark.parametrize("options", [("-q", "."), ("-M", "1")], ids=" ".join)
def test_nobody_knows_whether_a_mail_was_taken_by_a_server_that_goes_after_the_final_dot(
    options: tuple[str, ...],
) -> None:
    with smtp_sink(*options) as sink:
        assert outcome_of(sink) == UNKNOWN
        assert len(sink.taken()) == 1


def test_mails_through_postfix_reach_the_next_server_once_each(tmp_path: Path) -> None:
    with (
        smtp_sink("-p") as sink,
        postfix(sink.port) as server,
        staged(
            tmp_path,
            server.port,
            sink,
            at_once="8",
        ) as stage,
    ):
        people = [f"p{number}@b.example" for number in range(MAILS)]
        messages = {address: stage.asks_for(address) for address in people}
        stage.works()
        assert {tuple(stage.types(address)) for address in people} == {("mail_sent",)}
        eventually(lambda: len(sink.taken()) == MAILS, server.log)
        assert Counter(each.recipient for each in sink.taken()) == Counter(people)
        for each in sink.taken():
            assert f"Message-ID: <{messages[each.recipient]}@shop.example>".encode() in each.message


def test_the_dsn_that_postfix_writes_of_a_refusal_further_on_suppresses_the_recipient(tmp_path: Path) -> None:
    with (
        smtp_sink(*NOBODY) as sink,
        postfix(sink.port) as server,
        staged(
            tmp_path,
            server.port,
            sink,
        ) as stage,
    ):
        message = stage.asks_for("ana@b.example")
        stage.works()
        assert stage.types("ana@b.example") == ["mail_sent"]
        eventually(lambda: len(server.mailbox()) == 1, server.log)
        [dsn] = server.mailbox()
        assert b"multipart/report" in dsn
        taken = stage.shop.feedback.receive(raw=b64encode(dsn).decode(), recipients=["news@shop.example"])
        assert (taken.kind, [each.message for each in taken.taken]) == ("bounce", [message])
        assert stage.shop.suppression.get("ana@b.example").reason == "bounce"
        stage.asks_for("ana@b.example")
        stage.works()
        assert stage.types("ana@b.example") == ["mail_bounced", "mail_sent", "mail_skipped"]
        assert sink.taken() == []


def test_postfix_tries_again_what_the_next_server_puts_off_and_tells_of_no_bounce(tmp_path: Path) -> None:
    with (
        smtp_sink("-r", "RCPT", "-b", "450 4.2.0 Greylisted") as sink,
        postfix(sink.port) as server,
        staged(
            tmp_path,
            server.port,
            sink,
        ) as stage,
    ):
        stage.asks_for("ana@b.example")
        stage.works()
        eventually(lambda: server.log().count("status=deferred") >= 2, server.log)
        assert (server.mailbox(), sink.taken()) == ([], [])
        assert stage.types("ana@b.example") == ["mail_sent"]
