"""Publishers: consumers of the feed that send each event to a topic of Amazon SNS or a queue of SQS."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadline.engine.delivery.feed_consumer import FeedPage
from threadline.engine.engine import Engine
from threadline.engine.reading.person_reader import readable
from threadline.exports.publishing.messages import MESSAGE_BYTES_MAX, Message, message_of
from threadline.kernel.aws_errors import explained
from threadline.kernel.errors import Unavailable
from threadline.kernel.personal import Copy

AT_ONCE = 10
"""The most messages of one call, by SNS and SQS."""
CALLS_AT_ONCE = 4
"""Calls at the same time, where no order is promised."""
PAGE_EVENTS = 200
ATTEMPTS_MAX = 4
"""Calls for the same message, while the service takes its neighbours and not it."""

log = logging.getLogger("threadline.feed")

Send = Callable[[Sequence[Message]], Sequence[dict[str, Any]]]
"""Sends at most `AT_ONCE` messages; what the service answers about those that failed, by place as ``Id``."""


class Publisher:
    """Sends every event of the feed, or those that touch one projection; see `FeedHandler`.

    A FIFO topic or queue gets the events of each person in the order of the feed, and knows repeats within five
    minutes. Anywhere else a page's messages are sent side by side.
    """

    page_events = PAGE_EVENTS

    def __init__(self, engine: Engine, name: str, send: Send, *, touching: str = "", ordered: bool = False) -> None:
        self.name = name
        self._engine = engine
        self._send = send
        self._touching = touching
        self._calls_at_once = 1 if ordered else CALLS_AT_ONCE

    def handle(self, page: FeedPage) -> None:
        """Send what the page has. Raises if a message was not taken: then the whole page comes again."""
        events = [
            (position, recorded)
            for position, recorded in page.events(self._engine.damage)
            if not self._touching or self._engine.catalogue.touches(recorded.event.type, self._touching)
        ]
        people = readable(self._engine.reader, list({recorded.thread for _, recorded in events}))
        messages = []
        for position, recorded in events:
            person = people.get(recorded.thread)
            whose = recorded.thread if person is None else person.id
            messages.append(message_of(self._engine.catalogue, position, recorded, whose))
        calls = list(_calls(messages))
        if self._calls_at_once == 1 or len(calls) == 1:
            for call in calls:
                self._deliver(call)
        elif calls:
            with ThreadPoolExecutor(self._calls_at_once, "threadline-publish") as threads:
                for _ in threads.map(self._deliver, calls):
                    pass

    def _deliver(self, messages: Sequence[Message]) -> None:
        for _ in range(ATTEMPTS_MAX):
            failed = self._send(messages)
            if not failed:
                return
            why = f"{failed[0].get('Code')}: {failed[0].get('Message', '')}"
            indexes = {int(failure["Id"]) for failure in failed}
            messages = [message for index, message in enumerate(messages) if index in indexes]
            log.warning("%s: %d messages were not taken (%s)", self.name, len(messages), why)
        raise Unavailable(f"{self.name}: {len(messages)} messages were not taken ({why})")


def _calls(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages in calls that are not too large."""
    call: list[Message] = []
    size = 0
    for message in messages:
        if call and (len(call) == AT_ONCE or size + message.size > MESSAGE_BYTES_MAX):
            yield call
            call, size = [], 0
        call.append(message)
        size += message.size
    if call:
        yield call


def topic_publisher(engine: Engine, arn: str, client: Any) -> Publisher:
    """Publishes every event to a topic of SNS, FIFO if its name says so."""
    ordered = arn.endswith(".fifo")

    def send(messages: Sequence[Message]) -> Sequence[dict[str, Any]]:
        entries = [
            {
                "Id": str(index),
                "Message": message.body,
                "MessageAttributes": message.sent_attributes(),
                **_order(message, ordered),
            }
            for index, message in enumerate(messages)
        ]
        try:
            answer = client.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
        except Exception as error:
            raise explained(error, "sns", arn) from error
        return list(answer.get("Failed", ()))

    return Publisher(engine, f"topic:{arn.rpartition(':')[2]}", send, ordered=ordered)


def queue_publisher(engine: Engine, url: str, client: Any, touching: str) -> Publisher:
    """Sends the events that may change a projection to a queue of SQS, FIFO if its name says so."""
    ordered = url.endswith(".fifo")

    def send(messages: Sequence[Message]) -> Sequence[dict[str, Any]]:
        entries = [
            {
                "Id": str(index),
                "MessageBody": message.body,
                "MessageAttributes": message.sent_attributes(),
                **_order(message, ordered),
            }
            for index, message in enumerate(messages)
        ]
        try:
            answer = client.send_message_batch(QueueUrl=url, Entries=entries)
        except Exception as error:
            raise explained(error, "sqs", url) from error
        return list(answer.get("Failed", ()))

    return Publisher(engine, f"queue:{url.rpartition('/')[2]}", send, touching=touching, ordered=ordered)


def _order(message: Message, ordered: bool) -> dict[str, str]:
    return {"MessageGroupId": message.person, "MessageDeduplicationId": message.id} if ordered else {}


COPY = Copy("published events", why="whoever subscribes has them; `erasures.list` says who was erased")
