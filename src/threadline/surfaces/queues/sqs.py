"""A queue of Amazon SQS: messages received, deleted, parked with their reason, or left for later."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from threadline.kernel.aws_errors import explained
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.time import MILLISECOND
from threadline.surfaces.queues.calls import sqs_calls
from threadline.surfaces.queues.client import name_of_queue
from threadline.surfaces.queues.intake import QueueMessage, Taken

AT_ONCE = 10
"""The most messages of one call, by SQS."""
ATTRIBUTES_MAX = 10
"""The most attributes of a message, by SQS."""
REASON_LENGTH_MAX = 1_000

log = logging.getLogger("threadline.queues")


class Received(NamedTuple):
    """A message, and what SQS needs to do something with it."""

    message: QueueMessage
    handle: str
    attributes: Mapping[str, Any] = {}
    """Those that its sender gave it."""
    group: str = ""
    """Of a message in a FIFO queue."""


class SqsQueue:
    """One queue, with its dead-letter queue if it has one. Thread-safe.

    Raises `Forbidden` naming the permission that is missing, `InvalidSetting` for credentials, `NotFound`.
    """

    def __init__(self, url: str, client: Any = None, connections: int = 10) -> None:
        self.url = url
        self.name = name_of_queue(url)
        self._client = client or sqs_calls(url, connections)
        attributes = self._attributes()
        self.visibility_seconds = int(attributes.get("VisibilityTimeout", 30))
        """How long a message that was received is kept from others."""
        self._dead_letters = self._dead_letter_queue(attributes)

    def receive(self, wait_seconds: int) -> list[Received]:
        """At most `AT_ONCE` messages, as soon as there are any."""
        with _explained(self.url):
            answer = self._client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=AT_ONCE,
                WaitTimeSeconds=wait_seconds,
                MessageSystemAttributeNames=["SentTimestamp", "MessageGroupId"],
                MessageAttributeNames=["All"],
            )
        return [_received(message) for message in answer.get("Messages", [])]

    def delete(self, done: Sequence[Received]) -> None:
        """Take messages out of the queue. One that cannot be deleted comes again, which does no harm."""
        for entries in _pages([{"ReceiptHandle": message.handle} for message in done]):
            with _explained(self.url):
                answer = self._client.delete_message_batch(QueueUrl=self.url, Entries=entries)
            if answer.get("Failed"):
                log.warning("%d messages of %s could not be deleted and come again", len(answer["Failed"]), self.name)

    def hold(self, received: Sequence[Received], seconds: int) -> None:
        """Let nobody else have these messages for so long; 0: give them back now."""
        entries = [{"ReceiptHandle": message.handle, "VisibilityTimeout": seconds} for message in received]
        for page in _pages(entries):
            with _explained(self.url):
                self._client.change_message_visibility_batch(QueueUrl=self.url, Entries=page)

    def park(self, received: Received, why: Taken) -> None:
        """Move a message to the dead-letter queue, with the reason beside it. Without such a queue it is deleted: the
        rejected log has it."""
        log.warning("message %s of %s is parked (%s): %s", why.id, self.name, why.code, why.message)
        if self._dead_letters:
            own = {"ThreadlineCode": why.code, "ThreadlineReason": why.message, "ThreadlineMessageId": why.id}
            attributes = dict(list(received.attributes.items())[: ATTRIBUTES_MAX - len(own)]) | {
                name: {"DataType": "String", "StringValue": _text(value)} for name, value in own.items()
            }
            ordered = {"MessageGroupId": received.group or "-", "MessageDeduplicationId": why.id}
            with _explained(self._dead_letters):
                self._client.send_message(
                    QueueUrl=self._dead_letters,
                    MessageBody=received.message.body,
                    MessageAttributes=attributes,
                    **(ordered if self._dead_letters.endswith(".fifo") else {}),
                )
        self.delete([received])

    def _attributes(self) -> Mapping[str, str]:
        names = ["RedrivePolicy", "VisibilityTimeout"]
        with _explained(self.url):
            answer = self._client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        attributes: Mapping[str, str] = answer.get("Attributes", {})
        return attributes

    def _dead_letter_queue(self, attributes: Mapping[str, str]) -> str:
        """The URL of the queue that the redrive policy names; empty: there is none."""
        target = json.loads(attributes.get("RedrivePolicy") or "{}").get("deadLetterTargetArn", "")
        if not target:
            return ""
        account, name = target.split(":")[4:6]
        with _explained(target):
            answer = self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
        return str(answer["QueueUrl"])


def _received(raw: Mapping[str, Any]) -> Received:
    system = raw.get("Attributes", {})
    message = QueueMessage(raw["MessageId"], raw["Body"], int(system.get("SentTimestamp", 0)) * MILLISECOND)
    attributes = {
        name: {key: value[key] for key in ("DataType", "StringValue", "BinaryValue") if key in value}
        for name, value in raw.get("MessageAttributes", {}).items()
    }
    return Received(message, raw["ReceiptHandle"], attributes, system.get("MessageGroupId", ""))


def _pages(entries: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(entries), AT_ONCE):
        yield [{"Id": str(index), **entry} for index, entry in enumerate(entries[start : start + AT_ONCE])]


def _text(value: str) -> str:
    """Text that SQS takes: some, and no control characters."""
    return "".join(letter for letter in value if letter.isprintable())[:REASON_LENGTH_MAX] or "-"


@contextmanager
def _explained(resource: str) -> Iterator[None]:
    try:
        yield
    except ThreadlineError:
        raise
    except Exception as error:
        raise explained(error, "sqs", resource) from error
