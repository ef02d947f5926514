"""Payloads that are too large for a message, read from S3."""

from __future__ import annotations

import threading
from typing import Any

from threadline.kernel.aws_errors import explained
from threadline.kernel.errors import LimitExceeded, NotFound
from threadline.kernel.limits import REQUEST_BYTES_MAX
from threadline.kernel.lists import comma_separated
from threadline.settings import Settings
from threadline.surfaces.queues.bodies import Pointer
from threadline.surfaces.queues.client import aws_client
from threadline.surfaces.queues.intake import Payload, no_payloads


def payloads(settings: Settings, client: Any = None) -> Payload:
    """What reads the payloads of those buckets that the settings name.

    Whoever may send to the queue names bucket and key, and must not choose what else this process reads.
    """
    buckets = frozenset(comma_separated(settings.payload_buckets))
    return S3Payloads(buckets, client).read if buckets else no_payloads


class S3Payloads:
    """Reads the payloads of some buckets. Thread-safe."""

    def __init__(self, buckets: frozenset[str], client: Any = None) -> None:
        self._buckets = buckets
        self._client = client
        self._lock = threading.Lock()

    def read(self, pointer: Pointer) -> bytes:
        """The payload. Raises `NotFound` and `LimitExceeded`, and what `explained` makes of other errors."""
        resource = f"s3://{pointer.bucket}/{pointer.key}"
        if pointer.bucket not in self._buckets:
            raise NotFound(f"{resource:.300}: the setting payload_buckets does not name this bucket")
        with self._lock:
            client = self._client = self._client or aws_client("s3", resource)
        try:
            answer = client.get_object(Bucket=pointer.bucket, Key=pointer.key)
            if answer["ContentLength"] > REQUEST_BYTES_MAX:
                answer["Body"].close()
                raise LimitExceeded(f"{resource} has {answer['ContentLength']} bytes; at most {REQUEST_BYTES_MAX}")
            content: bytes = answer["Body"].read()
        except LimitExceeded:
            raise
        except Exception as error:
            raise explained(error, "s3", resource) from error
        return content
