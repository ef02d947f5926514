"""Messages that Lambda hands over: every event once, and of a batch only that comes again which could not be taken."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tests.surfaces.conftest import NOW
from tests.surfaces.lambda_stage import runtime_on
from threadline.engine.engine import Engine
from threadline.kernel.errors import Unavailable
from threadline.kernel.store import feed_pages
from threadline.kernel.time import MILLISECOND
from threadline.surfaces.lambda_.sqs import QueueFunction

QUEUE = "arn:aws:sqs:eu-west-1:000000000000:lead-ingestion"


def message(id: str, body: Any, queue: str = QUEUE) -> dict[str, Any]:
    """A record as an event source mapping has it."""
    return {
        "messageId": id,
        "receiptHandle": f"r-{id}",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": str(NOW // MILLISECOND)},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": queue,
        "awsRegion": "eu-west-1",
    }


def bought(number: int) -> dict[str, Any]:
    return {"type": "track", "userId": f"u{number % 7}", "event": "seen", "messageId": f"m-{number}"}


def failures(answer: dict[str, Any]) -> set[str]:
    return {each["itemIdentifier"] for each in answer["batchItemFailures"]}


def recorded(engine: Engine) -> int:
    return sum(each.entry.type == "seen" for each in feed_pages(engine.store))


def test_every_event_is_recorded_once_however_often_its_message_comes_and_poison_alone_comes_again(
    engine: Engine,
) -> None:
    function = QueueFunction(runtime_on(engine))
    messages = [message(str(number), bought(number)) for number in range(60)]
    poison = [message(f"poison {number}", text) for number, text in enumerate(["{", "[1]", '{"type": "track"}'])]
    deliveries = messages * 2 + poison
    Random(1).shuffle(deliveries)
    found = [failures(function.answer({"Records": deliveries[at : at + 10]})) for at in range(0, len(deliveries), 10)]
    assert set().union(*found) == {each["messageId"] for each in poison}
    assert recorded(engine) == 60
    assert len(engine.rejected.page("default")) == 3, "each with its reason"


def test_a_message_without_a_key_has_its_id_from_queue_and_message(engine: Engine) -> None:
    function = QueueFunction(runtime_on(engine))
    nameless = {**bought(1), "messageId": None}
    other = QUEUE.replace("lead-ingestion", "other")
    for _ in range(2):
        event = {"Records": [message("a", nameless), message("b", nameless), message("a", nameless, other)]}
        assert failures(function.answer(event)) == set()
    assert recorded(engine) == 3


def test_what_the_store_cannot_take_comes_again_as_a_whole(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    function = QueueFunction(runtime_on(engine))

    def away(batches: Any) -> Any:
        raise Unavailable("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "commit", away)
        with pytest.raises(Unavailable):
            function.answer({"Records": [message("1", bought(1))]})
    assert failures(function.answer({"Records": [message("1", bought(1))]})) == set()
    assert recorded(engine) == 1
