"""A real mail server: Postfix takes mail from us, relays it, refuses whom it does not know, and bounces."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from tests.senders.mails import mail
from tests.senders.test_mail_delivery import staged
from tests.senders.test_smtp import kind_of, sender_of, sent
from tests.servers.mail_sink import MailSink, mail_sink
from tests.servers.postfix import Postfix, postfix
from threadline.kernel.sender import Outcome
from threadline.senders.smtp import SmtpSender

pytestmark = pytest.mark.slow
SECONDS_MAX = 20.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Postfix, MailSink]]:
    with mail_sink(tmp_path_factory.mktemp("sink"), whole=True) as sink, postfix(sink.port) as server:
        yield server, sink


@pytest.fixture
def sender(servers: tuple[Postfix, MailSink]) -> Iterator[SmtpSender]:
    made = sender_of(f"smtp://127.0.0.1:{servers[0].port}?tls=off")
    yield made
    made.close()


def eventually(found: Callable[[], bool], server: Postfix) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not found():
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.05)


def test_a_mail_is_taken_under_the_id_of_its_queue_and_relayed_once(
    servers: tuple[Postfix, MailSink], sender: SmtpSender
) -> None:
    server, sink = servers
    outcome = sent(sender, "fine-ana@b.example", id="b" * 32)
    assert isinstance(outcome, Outcome)
    assert outcome.type == "mail_sent"
    queue_id = outcome.properties["provider_id"]
    # It is another process of Postfix that writes the log.
    eventually(lambda: f"{queue_id}: " in server.log(), server)
    eventually(lambda: any(each.id == "b" * 32 + "@shop.example" for each in sink.accepted()), server)
    (accepted,) = [each for each in sink.accepted() if each.to == "fine-ana@b.example"]
    assert accepted.message.endswith("Hello!\r\n.\r\nBye\r\n")


def test_utf8_reaches_the_recipient_through_postfix(servers: tuple[Postfix, MailSink], sender: SmtpSender) -> None:
    server, sink = servers
    message = mail("fine-grün@b.example").data["message"].replace(b"Hello!", "Grüße!".encode())
    assert kind_of(sent(sender, "fine-grün@b.example", message=message))[0] == "mail_sent"
    eventually(lambda: any(each.to == "fine-grün@b.example" for each in sink.accepted()), server)


def test_a_recipient_whom_postfix_does_not_know_is_a_permanent_bounce(sender: SmtpSender) -> None:
    outcome = sent(sender, "nobody@shop.example")
    assert isinstance(outcome, Outcome)
    assert outcome.type == "mail_bounced"
    assert (outcome.properties["bounce"], outcome.properties["code"]) == ("permanent", "5.1.1")
    assert kind_of(sent(sender, "news@shop.example"))[0] == "mail_sent"


def test_what_postfix_cannot_deliver_comes_back_as_a_dsn_with_our_message_id(
    servers: tuple[Postfix, MailSink], sender: SmtpSender
) -> None:
    server, _ = servers
    assert kind_of(sent(sender, "gone-later@b.example", id="c" * 32))[0] == "mail_sent"

    def bounces() -> list[Message]:
        found = [message_from_bytes(each) for each in server.mailbox()]
        return [each for each in found if each.get_content_type() == "multipart/report"]

    eventually(lambda: bool(bounces()), server)
    (dsn,) = bounces()
    assert "Status: 5.1.1" in dsn.as_string()
    assert "c" * 32 + "@shop.example" in dsn.as_string()


def test_a_bounce_that_postfix_writes_suppresses_the_recipient_once_it_is_handed_in(
    servers: tuple[Postfix, MailSink], tmp_path: Path
) -> None:
    server, sink = servers
    with staged(tmp_path, server.port, sink) as stage:
        message = stage.asks_for("gone-dsn@b.example")
        stage.works()
        assert stage.types("gone-dsn@b.example") == ["mail_sent"]
        mine = message.encode() + b"@shop.example"
        eventually(lambda: any(mine in each for each in server.mailbox()), server)
        (bounce,) = [each for each in server.mailbox() if mine in each]
        taken = stage.shop.feedback.receive(raw=b64encode(bounce).decode(), recipients=["news@shop.example"])
        assert (taken.kind, [each.message for each in taken.taken]) == ("bounce", [message])
        stage.asks_for("gone-dsn@b.example")
        stage.works()
        assert {"mail_bounced", "mail_skipped"} <= set(stage.types("gone-dsn@b.example"))
