"""Mail through Amazon SES v2, each call made once, and what each answer means for effect, recipient and queue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from threadline.kernel.effect import Effect
from threadline.kernel.errors import InvalidSetting, OutcomeUnknown
from threadline.kernel.extra import from_source
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, Outcome
from threadline.senders.smtp import MAIL_SENT

if TYPE_CHECKING:
    from mypy_boto3_sesv2 import SESV2Client

PROVIDER = "ses"
CONNECT_SECONDS = 3.0
TAGS = ("message", "workspace", "template", "journey", "broadcast", "step", "arm")
"""What of a mail's record becomes a message tag, by which feedback finds the mail."""
TAG_LENGTH_MAX = 256
PAUSED_SECONDS = 600.0
DAILY_SECONDS = 3_600.0
THROTTLED_SECONDS = 2.0
_TEXT_LENGTH_MAX = 300
_UNTAGGABLE = re.compile(r"[^A-Za-z0-9_\-.@]")

_THROTTLED = frozenset({"TooManyRequestsException", "Throttling", "ThrottlingException", "RequestThrottled"})
_QUOTA = frozenset({"LimitExceededException"})
_PAUSED = frozenset({"AccountSuspendedException", "SendingPausedException"})
_MESSAGE = frozenset({"MessageRejected", "BadRequestException", "ValidationException", "InvalidParameterValue"})
"""Of this message alone. Others, such as a domain that is not verified, meet every message of the queue."""


class Region(NamedTuple):
    """Where SES is called, and how."""

    name: str
    configuration_set: str = ""
    endpoint: str = ""


class SesSender:
    """Sends effects of the kind ``mail`` through Amazon SES. Thread-safe."""

    kind = "mail"

    def __init__(self, region: Region, timeout_seconds: float, connections: int) -> None:
        self._region = region
        self._client = _client(region, timeout_seconds, connections)

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """See `Sender`. Raises `OutcomeUnknown` where SES may have accepted the message."""
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectTimeoutError,
            EndpointConnectionError,
            HTTPClientError,
            ProxyConnectionError,
            SSLError,
        )

        data = effect.data
        more: dict[str, Any] = {}
        if self._region.configuration_set:
            more["ConfigurationSetName"] = self._region.configuration_set
        try:
            answer = self._client.send_email(
                Destination={"ToAddresses": [data["to"]]},
                Content={"Raw": {"Data": data["message"]}},
                EmailTags=tags_of({**data["record"], "message": effect_id, "workspace": data.get("workspace", "")}),
                **more,
            )
        except ClientError as error:
            return outcome_of(error.response)
        except (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError, SSLError) as error:
            return _retried({"error": _shown(error)}, 0.0)
        except HTTPClientError as error:  # the request was under way: timeouts, closed connections, cut answers
            raise OutcomeUnknown(f"SES was called and did not answer: {_shown(error)}") from None
        except BotoCoreError as error:  # it did not get as far as a request: credentials, parameters
            return _retried({"error": _shown(error)}, 0.0)
        sent = {**data["record"], "provider": PROVIDER, "provider_id": answer["MessageId"]}
        return Outcome(type=MAIL_SENT, properties=sent)


def tags_of(record: Mapping[str, Any]) -> list[Any]:
    """The message tags of a mail; what SES does not take in a value becomes an underscore."""
    tags = ((name, _UNTAGGABLE.sub("_", str(record.get(name) or ""))[:TAG_LENGTH_MAX]) for name in TAGS)
    return [{"Name": name, "Value": value} for name, value in tags if value]


def outcome_of(response: Mapping[str, Any]) -> Outcome:
    """What an error of SES means. Raises `OutcomeUnknown` where the message may have been accepted all the same."""
    code = str(response.get("Error", {}).get("Code", ""))
    text = str(response.get("Error", {}).get("Message", ""))[:_TEXT_LENGTH_MAX]
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    details = {"code": code, "status": status, "text": text}
    if code in _THROTTLED or code in _QUOTA or status == 429:
        daily = code in _QUOTA or "daily" in text.lower()
        return _retried(details, DAILY_SECONDS if daily else THROTTLED_SECONDS)
    if code in _PAUSED:
        return _retried(details, PAUSED_SECONDS)
    if status >= 500 and status != 503:
        raise OutcomeUnknown(f"SES failed with {status} {code}: {text}")
    if code in _MESSAGE:
        return Outcome(type=EFFECT_PARKED, properties=details, parked=f"SES refused it ({code}): {text}")
    # Credentials, an unverified domain, a missing configuration set: none is given up for what will be mended.
    return _retried(details, 0.0)


def _retried(details: dict[str, Any], seconds: float) -> Outcome:
    return Outcome(type=EFFECT_RETRIED, properties=details, retry_after_seconds=seconds, destination="failing")


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_TEXT_LENGTH_MAX]


def _client(region: Region, timeout_seconds: float, connections: int) -> SESV2Client:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise InvalidSetting("mail: the driver of Amazon SES is not installed", hint=from_source("aws")) from None
    config = Config(
        connect_timeout=min(CONNECT_SECONDS, timeout_seconds),
        read_timeout=max(timeout_seconds - CONNECT_SECONDS, 1.0),
        # botocore would send again what has timed out, and the recipient would get the mail twice.
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=max(connections, 1),
    )
    try:
        return boto3.session.Session().client(
            "sesv2", region_name=region.name, endpoint_url=region.endpoint or None, config=config
        )
    except (BotoCoreError, ValueError) as error:
        raise InvalidSetting(f"mail: Amazon SES in region {region.name!r}: {error}") from None
