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
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from threadline.kernel.aws_errors import explained
from threadline.outgoing.connections import Answer, Connections, repeated
from threadline.surfaces.queues.client import (
    ANSWER_SECONDS,
    ATTEMPTS_MAX,
    CONNECT_SECONDS,
    aws_client,
    region_of_queue,
)

CONTENT = "application/x-amz-json-1.0"
PAUSE_SECONDS_MAX = 20.0
_THROTTLED = frozenset(
    {
        "KmsThrottled",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)

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


class SqsCalls:
    """The calls that a queue is worked off with. Thread-safe."""

    def __init__(self, endpoint: str, region: str, credentials: Callable[[], Credentials], tls: Any = None) -> None:
        parts = urlsplit(endpoint)
        self._host = parts.netloc
        self._path = parts.path or "/"
        self._region = region
        self._credentials = credentials
        self._connections = Connections(
            endpoint, connect_seconds=CONNECT_SECONDS, answer_seconds=ANSWER_SECONDS, tls=tls
        )

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
        self._connections.close()

    def _call(self, operation: str, asked: Mapping[str, Any]) -> Any:
        body = msgspec.json.encode(asked)
        answer = repeated(partial(self._exchange, operation, body), _is_passing, ATTEMPTS_MAX, _pause)
        if answer.status != 200:
            raise _error(operation, answer)
        return _decode(answer.content) if answer.content else {}

    def _exchange(self, operation: str, body: bytes) -> Answer:
        credentials = self._credentials()
        signed = {"content-type": CONTENT, "host": self._host}
        signed["x-amz-date"] = stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        if credentials.token:
            signed["x-amz-security-token"] = credentials.token
        signed["x-amz-target"] = f"AmazonSQS.{operation}"
        authorization = signature(signed, self._path, body, stamp, self._region, credentials)
        return self._connections.exchange("POST", self._path, {**signed, "authorization": authorization}, body)


def _is_passing(answer: Answer) -> bool:
    return answer.status >= 500 or (answer.status != 200 and _code(answer) in _THROTTLED)


def _pause(attempt: int) -> None:
    time.sleep(min(PAUSE_SECONDS_MAX, random.random() * 2 ** (attempt - 1)))


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
    content = _content(answer)
    return CallError(operation, _code(answer), str(content.get("message", content.get("Message", ""))))


def _code(answer: Answer) -> str:
    # The code in the service's older protocol, which botocore shows, goes first.
    refusal = answer.headers.get("x-amzn-query-error", "").partition(";")[0]
    return refusal or str(_content(answer).get("__type", "")).rpartition("#")[2] or str(answer.status)


def _content(answer: Answer) -> dict[str, Any]:
    try:
        content = _decode(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a page of a load balancer's
        content = None
    return content if isinstance(content, dict) else {}
