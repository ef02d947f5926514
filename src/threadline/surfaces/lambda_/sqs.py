"""The function behind a queue of SQS: the events of its messages are recorded, and each that is not stays there."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadline.kernel.time import MILLISECOND
from threadline.surfaces.lambda_.runtime import Runtime, open_early, runtime
from threadline.surfaces.queues.intake import EventIntake, QueueMessage, failed
from threadline.surfaces.queues.payloads import payloads

Body = dict[str, Any]


class QueueFunction:
    """Takes the messages of one invocation together, so that they share commits."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._payload = payloads(runtime.settings)
        self._intakes: dict[str, EventIntake] = {}
        """By the queue's name, which is part of the ids of messages without a key."""

    def answer(self, event: Body) -> Body:
        """The ids of those messages that SQS has to hand over again, or in the end to the dead-letter queue.

        Raises `Unavailable` if the store can take nothing now: then all of them come again.
        """
        failures: list[str] = []
        self._runtime.follow()
        for queue, records in _by_queue(event["Records"]).items():
            intake = self._intakes.get(queue)
            if intake is None or intake.engine is not self._runtime.engine:
                workspace = self._runtime.settings.workspace
                intake = self._intakes[queue] = EventIntake(self._runtime.engine, workspace, queue, self._payload)
            failures += failed(intake.take([_message(record) for record in records]))
        return {"batchItemFailures": [{"itemIdentifier": id} for id in failures]}


def _by_queue(records: list[Body]) -> dict[str, list[Body]]:
    by_queue: dict[str, list[Body]] = {}
    for record in records:
        by_queue.setdefault(record["eventSourceARN"].rpartition(":")[2], []).append(record)
    return by_queue


def _message(record: Body) -> QueueMessage:
    sent_at = int(record.get("attributes", {}).get("SentTimestamp", 0)) * MILLISECOND
    return QueueMessage(record["messageId"], record["body"], sent_at)


@cache
def _function() -> QueueFunction:
    return QueueFunction(runtime())


def handler(event: Body, context: Any = None) -> Body:
    """The function of an event source mapping with `ReportBatchItemFailures`."""
    try:
        return _function().answer(event)
    finally:
        runtime().rest()


open_early(_function)
