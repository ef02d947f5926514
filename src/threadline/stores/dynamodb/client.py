"""The one way to DynamoDB's servers: signed requests on kept connections, patience where it helps, units counted.

botocore names the endpoint and the credentials; requests go past it, because it costs about 1.5 ms of CPU for each.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import botocore.exceptions
import botocore.session
import msgspec
import urllib3

from threadline.kernel.errors import InvalidSetting, StoreDamaged, Unavailable
from threadline.stores.dynamodb.address import Address

CONTENT_TYPE = "application/x-amz-json-1.0"
_SERVICE = "dynamodb"


class Credentials(NamedTuple):
    """Who asks."""

    access_key: str
    secret_key: str
    token: str = ""
    """The session token of temporary credentials; empty for lasting ones."""


def signed_headers(
    credentials: Credentials, region: str, host: str, target: str, body: bytes, at: datetime
) -> dict[str, str]:
    """The headers of a request, its signature included.

    Source: AWS General Reference, "Create a signed AWS API request". A tenth of what the general signer costs, because
    the path and the query are always empty. ``at`` must be in UTC; a request is void five minutes after it.
    """
    moment = at.strftime("%Y%m%dT%H%M%SZ")
    headers = {"content-type": CONTENT_TYPE, "host": host, "x-amz-date": moment}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    headers["x-amz-target"] = target
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{moment[:8]}/{region}/{_SERVICE}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = _key(credentials.secret_key, moment[:8], region)
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


@lru_cache(maxsize=8)
def _key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, _SERVICE, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


Body = dict[str, Any]

_TARGETS = {"dynamodb": "DynamoDB_20120810.", "dynamodbstreams": "DynamoDBStreams_20120810."}
_PATIENCE = frozenset(
    {
        "ContinuousBackupsUnavailableException",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "ThrottledException",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""Errors that another attempt may not meet."""
_PASSING = frozenset({"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
"""Reasons of a cancelled transaction that another attempt may not meet."""
_MISSING = "ResourceNotFoundException"
_GONE = frozenset({"ExpiredIteratorException", "TrimmedDataAccessException", "UnknownOperationException"})
_NAMES = frozenset({"DescribeStream", "DescribeTable", "GetRecords", "GetShardIterator"})
"""Operations that may well name what is not there."""
CONDITION_FAILED = "ConditionalCheckFailed"

BACKOFF_SECONDS_FIRST = 0.025
BACKOFF_SECONDS_MAX = 2.0
CONNECTIONS_MAX = 32
_STAND_IN = Credentials("threadline", "threadline")
"""For a local stand-in for AWS, which requires a signature and checks none."""


class Refused(Exception):
    """A condition did not hold. ``reasons`` has, per item of the request, a code and the item as it was found."""

    def __init__(self, reasons: Sequence[Body]) -> None:
        super().__init__("a condition did not hold")
        self.reasons = reasons


class Gone(Exception):
    """A named resource does not exist: a table, a shard, an iterator, a part of a stream, an operation."""


class Client:
    """Sends operations. Thread-safe. Raises `Refused`, `Gone` and this library's own errors, none of a driver."""

    def __init__(self, address: Address, *, patience_seconds: float = 20.0, timeout_seconds: float = 5.0) -> None:
        session = botocore.session.get_session()
        self.address = address
        self.region = address.region or str(session.get_config_variable("region") or "")
        if not self.region:
            raise InvalidSetting(f"store: dynamodb://{address.table} needs a region", hint="add ?region=… to the URL")
        self._endpoints = {name: address.endpoint or _endpoint(session, name, self.region) for name in _TARGETS}
        self._session = session
        self._stands_in = False
        self._patience_seconds = patience_seconds
        self._http = urllib3.PoolManager(
            maxsize=CONNECTIONS_MAX,
            retries=False,
            timeout=urllib3.Timeout(connect=min(2.0, timeout_seconds), read=timeout_seconds),
        )
        self._lock = threading.Lock()
        self._closed = False
        self.units: Counter[str] = Counter()
        """Capacity that AWS would bill, in units: ``write`` and ``read``, and requests by operation."""

    def call(self, operation: str, body: Body, service: str = "dynamodb") -> Body:
        """The answer to an operation, with retries.

        Throttling, conflicts, timeouts and broken connections are tried again with growing, random pauses, for as long
        as the patience lasts; so ``body`` must mean the same when it is carried out twice. Raises `Unavailable` when
        patience ends: what was asked for may then have happened.
        """
        data = msgspec.json.encode(body)
        deadline = time.monotonic() + self._patience_seconds
        attempt = 0
        while True:
            if self._closed:
                raise Unavailable("the store is closed")
            trouble = self._attempt(operation, data, service)
            if isinstance(trouble, dict):
                self._count(operation, trouble)
                return trouble
            pause = random.uniform(0, min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_FIRST * 2**attempt))
            attempt += 1
            if time.monotonic() + pause > deadline:
                raise Unavailable(f"DynamoDB did not take {operation} of {self.address.table}: {trouble}")
            time.sleep(pause)

    def _attempt(self, operation: str, data: bytes, service: str) -> Body | str:
        """An answer, or why it is worth to ask again."""
        endpoint = self._endpoints[service]
        target = _TARGETS[service] + operation
        host = urlsplit(endpoint).netloc
        headers = signed_headers(self._credentials(), self.region, host, target, data, datetime.now(UTC))
        try:
            status, content = self.post(endpoint, headers, data)
        except urllib3.exceptions.HTTPError as error:
            return f"{type(error).__name__}: {error}"
        try:
            answer = msgspec.json.decode(content)
        except msgspec.DecodeError:
            answer = None
        if status == 200:
            # A proxy in between may answer 200 with something else.
            return answer if isinstance(answer, dict) else "the answer was none of DynamoDB's"
        return _trouble(status, answer if isinstance(answer, dict) else {}, operation, self.address.table)

    def post(self, endpoint: str, headers: dict[str, str], data: bytes) -> tuple[int, bytes]:
        """One request and what came back. Tests put their faults here."""
        answer = self._http.request("POST", endpoint + "/", body=data, headers=headers)
        return answer.status, answer.data

    def _credentials(self) -> Credentials:
        if self._stands_in:
            return _STAND_IN
        try:
            credentials = self._session.get_credentials()
            if credentials is not None:
                frozen = credentials.get_frozen_credentials()
                return Credentials(frozen.access_key or "", frozen.secret_key or "", frozen.token or "")
        except botocore.exceptions.BotoCoreError as error:
            raise Unavailable(f"the AWS credentials cannot be obtained: {error}") from None
        if self.address.endpoint:
            # botocore would search again for each request, and ask the network for a role.
            self._stands_in = True
            return _STAND_IN
        raise InvalidSetting("store: there are no AWS credentials here", hint="see docs/dynamodb.md, Access")

    def _count(self, operation: str, answer: Body) -> None:
        consumed = answer.get("ConsumedCapacity") or ()
        units = sum(
            capacity["CapacityUnits"]
            for capacity in (consumed if isinstance(consumed, list) else [consumed])
            if capacity
        )
        kind = "read" if operation.endswith(("GetItem", "Query", "Scan")) else "write"
        with self._lock:
            self.units[kind] += units
            self.units[operation] += 1

    def close(self) -> None:
        """Close the connections; running calls end at their next attempt."""
        self._closed = True
        self._http.clear()


def _endpoint(session: Any, service: str, region: str) -> str:
    endpoint = session.get_component("endpoint_resolver").construct_endpoint(service, region)
    if endpoint is None:
        raise InvalidSetting(f"store: AWS has no region {region!r} with DynamoDB")
    return f"https://{endpoint['hostname']}"


def _trouble(status: int, answer: Body, operation: str, table: str) -> str:
    """Why a failed request is worth another attempt; raises where it is not."""
    code = str(answer.get("__type", "")).rpartition("#")[2]
    message = str(answer.get("message") or answer.get("Message") or "")
    if code == "TransactionCanceledException":
        reasons = answer.get("CancellationReasons") or []
        codes = {str(reason.get("Code")) for reason in reasons}
        if CONDITION_FAILED in codes:
            raise Refused(reasons)
        if codes <= _PASSING:
            return f"{code}: {', '.join(sorted(codes - {'None'}))}"
    if code == "ConditionalCheckFailedException":
        raise Refused([{"Code": CONDITION_FAILED, "Item": answer.get("Item")}])
    if code in _PATIENCE or status >= 500:
        return code or f"status {status}"
    if code in _GONE or (code == _MISSING and operation in _NAMES):
        raise Gone(f"{code}: {message}")
    if code == _MISSING:
        raise Unavailable(f"the table {table} is not there", hint="make it with: threadline migrate")
    if code in ("ExpiredTokenException", "RequestExpired"):
        return code  # the session renews what has expired
    if code == "ResourceInUseException" and operation == "CreateTable":
        raise Refused([{"Code": code}])
    if not code:
        hint = "check `endpoint` in the URL of the store"
        raise Unavailable(f"what answers for {table} is not DynamoDB: status {status}", hint=hint)
    if code in ("AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException"):
        raise Unavailable(f"AWS refuses {operation} of {table}: {message or code}", hint="see docs/dynamodb.md, Access")
    raise StoreDamaged(f"DynamoDB refuses {operation} of {table}: {code or status}: {message}")
