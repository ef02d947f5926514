"""Calls of SQS that are signed and sent without botocore's models: as botocore's own, and as robust."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.aws import aws
from threadline.kernel.errors import Forbidden, InvalidSetting, NotFound, Unavailable
from threadline.surfaces.queues.calls import CONTENT, SqsCalls, signature, sqs_calls
from threadline.surfaces.queues.client import ATTEMPTS_MAX
from threadline.surfaces.queues.sqs import SqsQueue

WORDS = st.text("abcXYZ019+/=-", min_size=1, max_size=20)


@given(
    WORDS,
    WORDS,
    st.none() | WORDS,
    st.sampled_from(["eu-west-1", "us-gov-east-1"]),
    st.binary(max_size=50),
    st.sampled_from(["/", "/queues"]),
)
def test_signature_of_any_call_is_the_one_that_botocore_makes(
    access: str, secret: str, token: str | None, region: str, body: bytes, path: str
) -> None:
    credentials = Credentials(access, secret, token)
    names = {"Content-Type": CONTENT, "Host": "sqs.example:4566", "X-Amz-Target": "AmazonSQS.SendMessage"}
    request = AWSRequest("POST", f"http://sqs.example:4566{path}", names, body)
    SigV4Auth(credentials, "sqs", region).add_auth(request)
    signed = {name.lower(): value for name, value in sorted(request.headers.items()) if name != "Authorization"}
    stamp = signed["x-amz-date"]
    assert signature(signed, path, body, stamp, region, credentials) == request.headers["Authorization"]


def emulated(**environment: str) -> Any:
    given = {
        "AWS_ENDPOINT_URL": aws().endpoint,
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "NO_PROXY": "127.0.0.1,localhost",
        **environment,
    }
    with patch.dict("os.environ", given):
        return sqs_calls(f"{aws().endpoint}/000000000000/any")


def test_calls_are_understood_and_binary_attributes_pass_unchanged_to_dead_letters() -> None:
    client = aws().client("sqs")
    dead = client.create_queue(QueueName="calls-dead")["QueueUrl"]
    url = client.create_queue(QueueName="calls")["QueueUrl"]
    attributes = {
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff\x10"},
        "said": {"DataType": "String", "StringValue": "☃"},
    }
    client.send_message(QueueUrl=url, MessageBody="a ☃", MessageAttributes=attributes)
    calls = emulated()
    assert isinstance(calls, SqsCalls)
    queue = SqsQueue(url, calls)
    (one,) = queue.receive(0)
    assert one.message.body == "a ☃"
    assert one.message.sent_at > 1_700_000_000_000_000
    queue.hold([one], 0)
    (one,) = queue.receive(0)
    calls.send_message(QueueUrl=dead, MessageBody="again", MessageAttributes=one.attributes)
    queue.delete([one])
    assert queue.receive(0) == []
    (moved,) = client.receive_message(QueueUrl=dead, MessageAttributeNames=["All"])["Messages"]
    assert {name: {**attributes[name]} for name in moved["MessageAttributes"]} == moved["MessageAttributes"]
    sent = calls.send_message_batch(QueueUrl=url, Entries=[{"Id": "0", "MessageBody": "b"}])
    assert [each["Id"] for each in sent["Successful"]] == ["0"]
    with pytest.raises(NotFound, match="nowhere does not exist"):
        SqsQueue(f"{aws().endpoint}/000000000000/nowhere", calls)
    calls.close()


class Answers(BaseHTTPRequestHandler):
    """Answers as it is told to, and then well."""

    protocol_version = "HTTP/1.1"
    told: list[tuple[int, bytes, dict[str, str]] | str]
    asked: int

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).asked += 1
        told = self.told.pop(0) if self.told else (200, b'{"Messages": []}', {})
        if told == "hang up":
            self.close_connection = True
            return
        assert not isinstance(told, str)
        status, content, headers = told
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *given: Any) -> None:
        pass


@contextmanager
def service(*told: tuple[int, bytes, dict[str, str]] | str) -> Iterator[tuple[SqsCalls, type[Answers]]]:
    """A service that answers like this, and calls to it."""
    made = type("Told", (Answers,), {"told": list(told), "asked": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), made)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    calls = SqsCalls(f"http://127.0.0.1:{server.server_port}", "eu-west-1", lambda: Credentials("a", "b"))
    try:
        with patch("time.sleep"):
            yield calls, made
    finally:
        calls.close()
        server.shutdown()
        server.server_close()


def refusal(code: str, status: int = 400, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    return status, f'{{"__type": "com.amazonaws.sqs#{code}", "message": "no"}}'.encode(), headers


WELL = (200, b'{"Attributes": {}}', {})
THROTTLED, AWAY, PAGE = refusal("RequestThrottled"), refusal("ServiceUnavailable", 503), (502, b"<html>", {})


@pytest.mark.parametrize("trouble", [[THROTTLED], [AWAY, PAGE], ["hang up", "hang up"], [PAGE, "hang up", THROTTLED]])
def test_service_that_is_in_trouble_for_a_moment_is_asked_again(trouble: list[Any]) -> None:
    with service(WELL, *trouble) as (calls, server):
        queue = SqsQueue("http://x/1/q", calls)
        assert queue.receive(0) == []
        assert server.asked == 2 + len(trouble)


@pytest.mark.parametrize(
    ("told", "error", "says"),
    [
        ([refusal("AccessDeniedException")], Forbidden, "sqs:ReceiveMessage is not permitted"),
        ([refusal("InvalidClientTokenId", 403)], InvalidSetting, "credentials"),
        ([refusal("X", **{"x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender"})], NotFound, "exist"),
        ([PAGE] * ATTEMPTS_MAX, Unavailable, "502"),
        (["hang up"] * 20, Unavailable, "RemoteDisconnected"),
    ],
)
def test_what_the_service_refuses_is_explained_as_with_botocore(told: Any, error: Any, says: str) -> None:
    with service(WELL, *told) as (calls, server):
        queue = SqsQueue("http://x/1/q", calls)
        with pytest.raises(error, match=says):
            queue.receive(0)
        assert server.asked <= 2 + ATTEMPTS_MAX


def test_connection_that_the_service_closed_while_idle_costs_no_attempt() -> None:
    with service(WELL, "hang up") as (calls, _), patch("time.sleep", side_effect=AssertionError("paused")):
        calls.get_queue_attributes(QueueUrl="q")
        calls.get_queue_attributes(QueueUrl="q")


def test_without_credentials_the_setting_is_named_and_behind_a_proxy_botocore_calls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    assert not isinstance(emulated(NO_PROXY="", HTTP_PROXY="http://127.0.0.1:1"), SqsCalls)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InvalidSetting, match="credentials"):
        sqs_calls("https://sqs.eu-west-1.amazonaws.com/123456789012/lead-ingestion")
