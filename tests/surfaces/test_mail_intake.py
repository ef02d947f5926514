"""Mails and notifications come in by a Maildir, LMTP, SMTP, a pipe and SQS; none is lost, and none counts twice."""

from __future__ import annotations

import json
import smtplib
import socket
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capabilities.feedback_stage import Stage
from tests.capabilities.test_feedback_recording import dsn, ses
from tests.servers.aws import aws
from threadline.engine.context import Context
from threadline.kernel.errors import Forbidden, InvalidSetting, InvalidValue, LimitExceeded, Unavailable
from threadline.surfaces.mail_intake.intake import Intake
from threadline.surfaces.mail_intake.maildir import Maildir
from threadline.surfaces.mail_intake.smtp import serve
from threadline.surfaces.mail_intake.sqs import QueueReader


def intake_of(stage: Stage) -> Intake:
    """What gives mails to the engine of a stage."""
    return Intake(lambda operation, params: operation.run(Context(stage.engine, "default", stage.now, "cli"), params))


def failing(error: Exception) -> Intake:
    """An intake behind which something is wrong."""

    def run(operation: Any, params: Any) -> Any:
        raise error

    return Intake(run)


def report(stage: Stage) -> bytes:
    """A bounce of a mail to Ada, without an address or an id in it that names the mail."""
    return b64decode(dsn("0" * 32))


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    """An empty Maildir."""
    for name in ("tmp", "new", "cur"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_maildir_is_taken_and_moved_to_cur(maildir):
    stage = Stage()
    message = stage.mail()
    (maildir / "new" / "1.host").write_bytes(b64decode(dsn(message)))
    (maildir / "new" / "2.host").write_bytes(b64decode(dsn(message)))  # delivered twice
    (maildir / "tmp" / "3.host").write_bytes(b"half a mail")
    Maildir(maildir, intake_of(stage)).take_all()
    assert sorted(each.name for each in (maildir / "cur").iterdir()) == ["1.host:2,S", "2.host:2,S"]
    assert list((maildir / "new").iterdir()) == []
    assert len(stage.events("ada", "mail_bounced")) == 1


@pytest.mark.parametrize("error", [Unavailable("full"), Forbidden("scope"), InvalidSetting("x")])
def test_maildir_keeps_what_cannot_be_taken_now(maildir, error):
    stage = Stage()
    (maildir / "new" / "1.host").write_bytes(b64decode(dsn(stage.mail())))
    assert Maildir(maildir, failing(error)).take_all()
    assert [each.name for each in (maildir / "new").iterdir()] == ["1.host"]
    Maildir(maildir, intake_of(stage)).take_all()
    assert len(stage.events("ada", "mail_bounced")) == 1


def test_maildir_leaves_what_is_refused_and_asks_once(maildir):
    (maildir / "new" / "1.host").write_bytes(b"x")
    watched = Maildir(maildir, failing(LimitExceeded("too long")))
    assert not watched.take_all()
    watched._intake = SimpleNamespace(mail=pytest.fail)
    assert not watched.take_all()
    assert [each.name for each in (maildir / "new").iterdir()] == ["1.host"]


def test_folder_that_is_no_maildir_is_refused(tmp_path):
    with pytest.raises(InvalidSetting, match="no Maildir"):
        Maildir(tmp_path, failing(Unavailable()))


@contextmanager
def listening(intake: Intake, *, lmtp: bool) -> Iterator[int]:
    """A server in a thread, and its port."""
    stopping, ports, known = threading.Event(), list[int](), threading.Event()

    def ready(port: int) -> None:
        ports.append(port)
        known.set()

    thread = threading.Thread(
        target=serve, args=(intake, "127.0.0.1", 0, stopping, ready), kwargs={"lmtp": lmtp}, daemon=True
    )
    thread.start()
    assert known.wait(30)
    try:
        yield ports[0]
    finally:
        stopping.set()
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("lmtp", [True, False])
def test_mail_server_hands_a_bounce_over(lmtp):
    stage = Stage()
    message = stage.mail()
    client = smtplib.LMTP if lmtp else smtplib.SMTP
    with listening(intake_of(stage), lmtp=lmtp) as port, client("127.0.0.1", port) as server:
        refused = server.sendmail("", [f"bounce+{message}@shop.example"], report(stage))
        assert refused == {}
        assert server.noop()[0] == 250
    (event,) = stage.events("ada", "mail_bounced")
    assert event.properties["message"] == message
    assert stage.suppressed() == "bounce"


def test_lmtp_answers_for_each_recipient():
    stage = Stage()
    message = stage.mail()
    with listening(intake_of(stage), lmtp=True) as port, socket.create_connection(("127.0.0.1", port)) as connection:
        answers = connection.makefile("rb")
        commands = ["LHLO x", "MAIL FROM:<>", "RCPT TO:<a@x>", f"RCPT TO:<bounce+{message}@x>", "DATA"]
        for each in commands:
            connection.sendall(f"{each}\r\n".encode())
        while not answers.readline().startswith(b"354"):
            pass
        connection.sendall(report(stage) + b"\r\n.\r\nQUIT\r\n")
        assert [answers.readline()[:3] for _ in range(3)] == [b"250", b"250", b"221"]
    assert len(stage.events("ada", "mail_bounced")) == 1


@pytest.mark.parametrize(
    ("error", "code"), [(Unavailable("full"), 451), (Forbidden("scope"), 451), (InvalidValue("x"), 554)]
)
@pytest.mark.parametrize("lmtp", [True, False])
def test_mail_server_keeps_what_cannot_be_taken_now(lmtp, error, code):
    client = smtplib.LMTP if lmtp else smtplib.SMTP
    with listening(failing(error), lmtp=lmtp) as port, client("127.0.0.1", port) as server:
        server.ehlo_or_helo_if_needed()
        server.mail("")
        server.rcpt("a@shop.example")
        assert server.data(b"Subject: x\r\n\r\nx")[0] == code


@pytest.fixture
def queue() -> tuple[Any, str, str]:
    """SQS of the emulator, a new queue in it, and a topic that writes to it."""
    clients = {name: aws().client(name) for name in ("sqs", "sns", "ses")}
    url = clients["sqs"].create_queue(QueueName="feedback", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    clients["sqs"].purge_queue(QueueUrl=url)
    arn = clients["sqs"].get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = clients["sns"].create_topic(Name="feedback")["TopicArn"]
    clients["sns"].subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return clients, url, topic


@pytest.mark.parametrize(
    ("local", "type", "reason"),
    [
        ("success", "mail_delivered", ""),
        ("bounce", "mail_bounced", "bounce"),
        ("complaint", "mail_complained", "complaint"),
    ],
)
def test_what_ses_says_comes_by_sns_and_sqs_and_is_deleted_once_it_is_recorded(queue, local, type, reason):
    clients, url, topic = queue
    address = f"{local}@simulator.amazonses.com"
    clients["ses"].verify_email_identity(EmailAddress="news@shop.example")
    for kind in ("Bounce", "Complaint", "Delivery"):
        clients["ses"].set_identity_notification_topic(
            Identity="news@shop.example", NotificationType=kind, SnsTopic=topic
        )
    body = {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Hello"}}}
    sent = clients["ses"].send_email(Source="news@shop.example", Destination={"ToAddresses": [address]}, Message=body)
    stage = Stage()
    stage.mail(address, provider="ses", provider_id=sent["MessageId"])

    away = QueueReader(url, failing(Unavailable("full")), clients["sqs"])
    assert away.take_some(1) > 0
    reader = QueueReader(url, intake_of(stage), clients["sqs"])
    assert reader.take_some(1) > 0
    assert reader.take_some(0) == 0
    assert len(stage.events("ada", type)) == 1
    assert stage.suppressed(address) == reason


def test_message_that_the_queue_gives_twice_counts_once(queue):
    clients, url, topic = queue
    stage = Stage()
    text = ses(stage, stage.mail(), "Delivery", "delivery", recipients=["ada@example.com"])
    for _ in range(2):
        clients["sns"].publish(TopicArn=topic, Message=text)
        clients["sqs"].send_message(QueueUrl=url, MessageBody=text)  # raw message delivery
    reader = QueueReader(url, intake_of(stage), clients["sqs"])
    while reader.take_some(0):
        pass
    assert len(stage.events("ada", "mail_delivered")) == 1


def test_mail_that_ses_received_is_read():
    stage = Stage()
    message = stage.mail()
    raw = b64decode(dsn(message)).decode()
    text = {
        "notificationType": "Received",
        "content": raw,
        "mail": {"source": "", "messageId": "x"},
        "receipt": {"recipients": ["bounce@shop.example"], "action": {"type": "SNS", "encoding": "UTF8"}},
    }
    assert intake_of(stage).notification(json.dumps(text)) == "taken"
    assert len(stage.events("ada", "mail_bounced")) == 1
