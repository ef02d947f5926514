"""Clients of AWS's services, made when the first of them is needed."""

from __future__ import annotations

from typing import Any

from threadline.kernel.aws_errors import explained
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import from_source

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 30.0
"""Longer than a request waits for messages."""
ATTEMPTS_MAX = 4


def aws_client(service: str, resource: str, *, region: str | None = None, connections: int = 10) -> Any:
    """The client of a service. ``resource`` is what it is needed for, for errors.

    Endpoint and credentials are those of AWS's own environment variables and files. Raises `InvalidSetting`.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise InvalidSetting(f"{resource}: boto3 is not installed", hint=from_source("aws")) from None
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        max_pool_connections=connections,
        retries={"total_max_attempts": ATTEMPTS_MAX, "mode": "standard"},
    )
    try:
        make: Any = boto3.session.Session().client  # its types name each service of AWS
        return make(service, region_name=region, config=config)
    except (BotoCoreError, ValueError) as error:
        raise explained(error, service, resource) from None


def region_of_queue(url: str) -> str | None:
    """The region in the URL of a queue; None for an address that is not Amazon's: the environment names it then."""
    parts = url.split("/")[2].split(".") if url.count("/") > 2 else []
    return parts[1] if len(parts) > 2 and parts[0] == "sqs" else None


def name_of_queue(url: str) -> str:
    """The name of a queue. Raises `InvalidSetting` for what is no URL of one."""
    name = url.rstrip("/").rpartition("/")[2]
    if not name or "://" not in url or url.count("/") < 3:
        raise InvalidSetting(
            f"{url!r:.200} is not the URL of a queue",
            hint="Write it like https://sqs.eu-central-1.amazonaws.com/123456789012/lead-ingestion",
        )
    return name


def region_of_topic(arn: str) -> str | None:
    """The region in the name of a topic. Raises `InvalidSetting` for what is none."""
    parts = arn.split(":")
    if len(parts) != 6 or parts[0] != "arn" or parts[2] != "sns" or not parts[5]:
        raise InvalidSetting(
            f"{arn!r:.200} is not the ARN of a topic",
            hint="Write it like arn:aws:sns:eu-central-1:123456789012:lead-events",
        )
    return parts[3] or None
