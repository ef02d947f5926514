"""Notifications of SES from a queue of Amazon SQS. A message is deleted once what it says is durable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from threadline.surfaces.mail_intake.intake import Intake, log
from threadline.surfaces.queues.client import aws_client, region_of_queue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

WAIT_SECONDS = 5
"""How long a request waits for messages; the process can be stopped in between."""
FAILED_SECONDS = 10.0
_AT_ONCE = 10
"""The most that SQS gives."""


class QueueReader:
    """Takes messages of one queue. Any number of processes may read it."""

    def __init__(self, url: str, intake: Intake, client: SQSClient | None = None) -> None:
        self._url = url
        self._intake = intake
        self._client: SQSClient = client or aws_client("sqs", url, region=region_of_queue(url))

    def take_some(self, wait_seconds: int = WAIT_SECONDS) -> int:
        """Take what is there; how many messages were. What cannot be taken now comes again by itself."""
        answer = self._client.receive_message(
            QueueUrl=self._url, MaxNumberOfMessages=_AT_ONCE, WaitTimeSeconds=wait_seconds
        )
        messages = answer.get("Messages", [])
        for message in messages:
            # What is refused would come for ever; the queue's own redrive policy keeps it.
            if self._intake.notification(message["Body"]) == "taken":
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        return len(messages)

    def watch(self, stopping: threading.Event) -> None:
        """Take what comes until ``stopping`` is set."""
        while not stopping.is_set():
            try:
                self.take_some()
            except Exception as error:  # noqa: BLE001 — whatever is wrong with the network, the queue has everything
                log.warning("the queue cannot be read: %s", error)
                stopping.wait(FAILED_SECONDS)
