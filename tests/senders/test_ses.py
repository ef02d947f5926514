"""Mail through Amazon SES: real HTTP, against MiniStack (an emulator), and against answers as AWS documents them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from tests.senders.mails import mail
from tests.servers.aws import aws
from threadline.kernel.errors import InvalidSetting, OutcomeUnknown
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, Outcome, Sender
from threadline.senders.mail import make_sender
from threadline.senders.ses import SesSender, tags_of


def sender_of(endpoint: str, **options: str) -> Sender:
    more = "".join(f"&{name}={value}" for name, value in options.items())
    ports: Any = SimpleNamespace(environment=lambda name: "")
    return make_sender(f"ses://eu-central-1?endpoint={quote(endpoint, safe='')}{more}", ports, 2)


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class Answering:
    """An endpoint that gives every request one answer, or none."""

    def __init__(self, status: int, error: str, text: str) -> None:
        self.requests = 0
        self.body = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.requests += 1
                outer.body = self.rfile.read(int(self.headers["Content-Length"]))
                if status == 0:
                    self.connection.close()
                    return
                body = f'{{"message": "{text}"}}'.encode()
                self.send_response(status)
                self.send_header("x-amzn-errortype", error)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def answering(status: int, error: str = "", text: str = "") -> Iterator[Answering]:
    endpoint = Answering(status, error, text)
    threading.Thread(target=endpoint.server.serve_forever, args=(0.02,), daemon=True).start()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


def test_a_mail_reaches_ses_and_its_outcome_has_the_id_of_ses() -> None:
    sender = sender_of(aws().endpoint)
    assert isinstance(sender, SesSender)
    refused = sender.send(mail("ana@b.example"), "a" * 32, "thread")
    assert "not verified" in refused.parked
    sender._client.create_email_identity(EmailIdentity="shop.example")
    outcome = sender.send(mail("ana@b.example", "a" * 32), "a" * 32, "thread")
    assert outcome.type == "mail_sent"
    assert outcome.properties["provider"] == "ses"
    (accepted,) = [each for each in aws().mails() if each["MessageId"] == outcome.properties["provider_id"]]
    assert accepted["To"] == ["ana@b.example"]
    assert accepted["Subject"] == "Hello"


@pytest.mark.parametrize(
    ("status", "error", "text", "type", "destination", "wait"),
    [
        (429, "TooManyRequestsException", "Maximum sending rate exceeded.", EFFECT_RETRIED, "failing", 2),
        (400, "LimitExceededException", "Daily message quota exceeded.", EFFECT_RETRIED, "failing", 3_600),
        (400, "SendingPausedException", "Sending paused for this account.", EFFECT_RETRIED, "failing", 600),
        (400, "AccountSuspendedException", "", EFFECT_RETRIED, "failing", 600),
        (400, "MailFromDomainNotVerifiedException", "", EFFECT_RETRIED, "failing", 0),
        (404, "NotFoundException", "Configuration set <a> does not exist.", EFFECT_RETRIED, "failing", 0),
        (403, "AccessDeniedException", "", EFFECT_RETRIED, "failing", 0),
        (503, "ServiceUnavailable", "", EFFECT_RETRIED, "failing", 0),
        (400, "MessageRejected", "Email address is not verified.", EFFECT_PARKED, "healthy", None),
        (400, "BadRequestException", "Missing final '@domain'", EFFECT_PARKED, "healthy", None),
    ],
)
def test_an_error_of_ses_has_its_outcome(
    status: int, error: str, text: str, type: str, destination: str, wait: float | None
) -> None:
    with answering(status, error, text) as endpoint:
        outcome = sender_of(endpoint.url).send(mail("ana@b.example"), "0" * 32, "thread")
    assert (outcome.type, outcome.destination, outcome.retry_after_seconds) == (type, destination, wait)
    assert text in outcome.properties["text"]
    assert endpoint.requests == 1


@pytest.mark.parametrize("status", [0, 500, 502, 504])
def test_a_call_without_a_clear_answer_is_unknown_and_is_made_once(status: int) -> None:
    with answering(status, "InternalFailure") as endpoint, pytest.raises(OutcomeUnknown):
        sender_of(endpoint.url).send(mail("ana@b.example"), "0" * 32, "thread")
    assert endpoint.requests == 1


def test_a_call_has_the_message_as_it_is_with_tags_and_configuration_set() -> None:
    with answering(400, "BadRequestException") as endpoint:
        sender_of(endpoint.url, configuration_set="shop").send(mail("ana@b.example", "a" * 32), "a" * 32, "thread")
    called = json.loads(endpoint.body)
    assert base64.b64decode(called["Content"]["Raw"]["Data"]) == mail("ana@b.example", "a" * 32).data["message"]
    assert called["Destination"] == {"ToAddresses": ["ana@b.example"]}
    assert called["ConfigurationSetName"] == "shop"
    assert {each["Name"]: each["Value"] for each in called["EmailTags"]} == {
        "message": "a" * 32,
        "workspace": "default",
        "template": "hello",
    }


def test_nobody_answering_at_all_is_no_call() -> None:
    outcome = sender_of("http://127.0.0.1:1").send(mail("ana@b.example"), "0" * 32, "thread")
    assert (outcome.type, outcome.destination) == (EFFECT_RETRIED, "failing")


def test_tags_hold_what_feedback_looks_for_in_letters_that_ses_takes() -> None:
    record = {"message": "0" * 32, "template": "Grüße & more", "broadcast": "spring-sale", "subject": "left out"}
    assert tags_of(record) == [
        {"Name": "message", "Value": "0" * 32},
        {"Name": "template", "Value": "Gr__e___more"},
        {"Name": "broadcast", "Value": "spring-sale"},
    ]


def test_an_option_that_ses_has_not_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="no option 'tls'"):
        sender_of(aws().endpoint, tls="off")


def test_without_credentials_the_mail_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    outcome = sender_of("http://127.0.0.1:1").send(mail("ana@b.example"), "0" * 32, "thread")
    assert isinstance(outcome, Outcome)
    assert "NoCredentialsError" in outcome.properties["error"]
