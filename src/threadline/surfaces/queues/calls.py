"""Calls of SQS without botocore's models: signed JSON over connections that stay open, for a fifth of the processor.

Where to call, with which credentials and certificates, botocore decides as ever. The arguments and answers are those of
its client, except that a binary attribute is base64 text in both.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from threadline.kernel.aws_errors import explained
from threadline.surfaces.queues.client import (
    ANSWER_SECONDS,
    ATTEMPTS_MAX,
    CONNECT_SECONDS,
    aws_client,
    region_of_queue,
)

CONTENT = "application/x-amz-json-1.0"
PAUSE_SECONDS_MAX = 20.0
_THROTTLED = frozenset({
    "KmsThrottled", "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "ThrottledException",
    "Throttling", "ThrottlingException", "TooManyRequestsException",
})  # fmt: skip

_decode = msgspec.json.Decoder().decode


class Credentials(Protocol):
    """What botocore calls frozen credentials."""

    @property
    def access_key(self) -> Any: ...  # noqa: D102
    @property
    def secret_key(self) -> Any: ...  # noqa: D102
    @property
    def token(self) -> Any: ...  # noqa: D102


class CallError(Exception):
    """What SQS refuses, in the form of botocore's errors."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.operation_name = operation
        self.response = {"Error": {"Code": code, "Message": message}}


class Answer(NamedTuple):
    """Of HTTP."""

    status: int
    content: bytes
    refusal: str
    """The code of the error in the service's older protocol, which botocore shows."""


class SqsCalls:
    """The calls that a queue is worked off with. Thread-safe."""

    def __init__(self, endpoint: str, region: str, credentials: Callable[[], Credentials], tls: Any = None) -> None:
        parts = urlsplit(endpoint)
        self._host = parts.netloc
        self._path = parts.path or "/"
        self._region = region
        self._credentials = credentials
        where = (parts.hostname or "", parts.port)
        self._connect: Callable[[], HTTPConnection]
        if parts.scheme == "https":
            self._connect = lambda: HTTPSConnection(*where, timeout=CONNECT_SECONDS, context=tls)
        else:
            self._connect = lambda: HTTPConnection(*where, timeout=CONNECT_SECONDS)
        self._idle: deque[HTTPConnection] = deque()

    def receive_message(self, **asked: Any) -> Any:
        """See botocore; as all of these."""
        return self._call("ReceiveMessage", asked)

    def delete_message_batch(self, **asked: Any) -> Any:
        """Delete messages."""
        return self._call("DeleteMessageBatch", asked)

    def change_message_visibility_batch(self, **asked: Any) -> Any:
        """Keep messages from others, or give them back."""
        return self._call("ChangeMessageVisibilityBatch", asked)

    def send_message(self, **asked: Any) -> Any:
        """Send one message."""
        return self._call("SendMessage", asked)

    def send_message_batch(self, **asked: Any) -> Any:
        """Send messages."""
        return self._call("SendMessageBatch", asked)

    def get_queue_attributes(self, **asked: Any) -> Any:
        """What a queue is like."""
        return self._call("GetQueueAttributes", asked)

    def get_queue_url(self, **asked: Any) -> Any:
        """The URL of a queue by its name."""
        return self._call("GetQueueUrl", asked)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _call(self, operation: str, asked: Mapping[str, Any]) -> Any:
        body = msgspec.json.encode(asked)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                answer = self._exchange(operation, body)
            except (OSError, HTTPException):
                if attempt == ATTEMPTS_MAX:
                    raise
            else:
                if answer.status == 200:
                    break
                error = _error(operation, answer)
                again = answer.status >= 500 or error.response["Error"]["Code"] in _THROTTLED
                if not again or attempt == ATTEMPTS_MAX:
                    raise error
            time.sleep(min(PAUSE_SECONDS_MAX, random.random() * 2 ** (attempt - 1)))
        return _decode(answer.content) if answer.content else {}

    def _exchange(self, operation: str, body: bytes) -> Answer:
        while True:
            try:
                connection, used = self._idle.pop(), True
            except IndexError:
                connection, used = self._opened(), False
            try:
                return self._exchange_on(connection, operation, body)
            except (OSError, HTTPException) as error:
                connection.close()
                # A server closes connections that were idle for long: that says nothing about the next one.
                if not used or isinstance(error, TimeoutError):
                    raise
            except BaseException:
                connection.close()
                raise

    def _opened(self) -> HTTPConnection:
        connection = self._connect()
        connection.connect()
        connection.sock.settimeout(ANSWER_SECONDS)
        return connection

    def _exchange_on(self, connection: HTTPConnection, operation: str, body: bytes) -> Answer:
        credentials = self._credentials()
        signed = {"content-type": CONTENT, "host": self._host}
        signed["x-amz-date"] = stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        if credentials.token:
            signed["x-amz-security-token"] = credentials.token
        signed["x-amz-target"] = f"AmazonSQS.{operation}"
        authorization = signature(signed, self._path, body, stamp, self._region, credentials)
        connection.request("POST", self._path, body, {**signed, "authorization": authorization})
        response = connection.getresponse()
        content = response.read()
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        refusal = "" if response.status == 200 else response.getheader("x-amzn-query-error", "")
        return Answer(response.status, content, refusal.partition(";")[0])


def sqs_calls(url: str, connections: int = 10) -> Any:
    """What calls a queue: `SqsCalls`, or botocore's client where a proxy is between. Raises `InvalidSetting`."""
    client = aws_client("sqs", url, region=region_of_queue(url), connections=connections)
    from botocore.exceptions import NoCredentialsError
    from botocore.httpsession import get_cert_path
    from botocore.session import get_session
    from botocore.utils import get_environ_proxies

    endpoint = client.meta.endpoint_url
    if get_environ_proxies(endpoint):
        return client
    session = get_session()
    credentials = session.get_credentials()
    if credentials is None:
        raise explained(NoCredentialsError(), "sqs", url)
    tls = None
    if endpoint.startswith("https:"):
        bundle = session.get_config_variable("ca_bundle") or get_cert_path(True)
        tls = ssl.create_default_context(cafile=bundle)
    return SqsCalls(endpoint, client.meta.region_name, credentials.get_frozen_credentials, tls)


def signature(
    headers: Mapping[str, str], path: str, body: bytes, stamp: str, region: str, credentials: Credentials
) -> str:
    """The header `authorization` of a POST to SQS: version 4 of AWS's signatures over all of these headers, which are
    in lower case and sorted by name."""
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"POST\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{stamp[:8]}/{region}/sqs/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signed = hmac.digest(_key(credentials.secret_key, scope), text.encode(), "sha256").hex()
    return f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signed}"


@lru_cache(maxsize=8)
def _key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _error(operation: str, answer: Answer) -> CallError:
    try:
        content = _decode(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a page of a load balancer's
        content = None
    if not isinstance(content, dict):
        content = {}
    code = answer.refusal or str(content.get("__type", "")).rpartition("#")[2] or str(answer.status)
    return CallError(operation, code, str(content.get("message", content.get("Message", ""))))
