"""Committed events on a topic and in queues: all of them, with their positions, whatever is refused or killed."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.mortal import Fate, Killed
from tests.servers.aws import aws
from threadline.app import open_dispatcher
from threadline.capabilities.foundation.events.forms import EventView, event_view
from threadline.engine.delivery.feed_consumer import FeedConsumer, consumer_state
from threadline.engine.delivery.leases import Leases
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack_event
from threadline.exports.publishing.messages import MESSAGE_BYTES_MAX
from threadline.exports.publishing.publisher import Publisher, queue_publisher, topic_publisher
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.store import feed_pages
from threadline.kernel.time import MINUTE, SECOND
from threadline.settings import Settings, load

HOSTILE = ["plain", "\x00control\x1f", "\uffff\ufffe", "\U0001f600", "q'\"\\", "é" * 300, "line\nline"]
ARN = "arn:aws:sns:eu-west-1:000000000000:lead-events"


class Service:
    """SNS and SQS as far as publishers call them: it refuses what they refuse, and some by chance."""

    def __init__(self, draw: Random, refusing: float = 0.0) -> None:
        self.draw, self.refusing = draw, refusing
        self.got: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def publish_batch(self, *, TopicArn: str, PublishBatchRequestEntries: Any) -> Any:  # noqa: N803
        return self.take(PublishBatchRequestEntries, "Message")

    def send_message_batch(self, *, QueueUrl: str, Entries: Any) -> Any:  # noqa: N803
        return self.take(Entries, "MessageBody")

    def take(self, entries: Any, body: str) -> Any:
        assert 1 <= len(entries) <= 10
        assert len({each["Id"] for each in entries}) == len(entries)
        texts = [each[body] for each in entries]
        for each in entries:
            texts += [value["StringValue"] for value in each["MessageAttributes"].values()]
            assert all(value["StringValue"] for value in each["MessageAttributes"].values())
        assert sum(len(text.encode()) for text in texts) <= MESSAGE_BYTES_MAX
        for text in texts:
            assert all(c in "\t\n\r" or (c >= "\x20" and c not in "\ufffe\uffff") for c in text)
        if self.draw.random() < self.refusing / 2:
            raise ConnectionError("the service is away")
        failed = [each for each in entries if self.draw.random() < self.refusing]
        self.got += [(json.loads(each[body]), each) for each in entries if each not in failed]
        return {"Failed": [{"Id": each["Id"], "Code": "InternalError", "Message": "try again"} for each in failed]}

    def positions(self) -> set[int]:
        return {content["position"] for content, _ in self.got}


class Stage:
    def __init__(self, service: Any, arn: str = ARN, touching: str = "") -> None:
        self.now = staging.NOW
        self.engine: Engine = staging.engine(clock=lambda: self.now)
        self.service = service
        self.arn, self.touching = arn, touching
        self.fate = Fate(self.engine.store)

    def record(self, *texts: str, type: str = "seen", start: int = 0) -> None:
        events = [
            staging.event(type, {"user_id": f"p{place % 3}"}, f"k{start + place}", properties={"text": text})
            for place, text in enumerate(texts)
        ]
        assert set(staging.statuses(self.engine.recorder.record(events))) <= {"accepted"}

    def publisher(self) -> Publisher:
        if self.touching:
            return queue_publisher(self.engine, "http://sqs/1/queue", self.service, self.touching)
        return topic_publisher(self.engine, self.arn, self.service)

    def consumer(self) -> FeedConsumer:
        return FeedConsumer(
            self.engine.store, self.engine.clock, self.publisher(), Leases(self.engine.store, self.engine.clock, "one")
        )

    def all(self) -> list[Any]:
        return [unpack_event(each.entry) for each in feed_pages(self.engine.store)]


@given(st.integers(0, 2**32), st.lists(st.sampled_from(HOSTILE), max_size=25), st.booleans())
def test_every_event_arrives_with_its_position_whatever_is_refused(seed: int, texts: list[str], ordered: bool) -> None:
    draw = Random(seed)
    on = Stage(Service(draw, refusing=0.3), ARN + (".fifo" if ordered else ""))
    on.record(*texts)
    on.record(*draw.sample(texts, len(texts) // 2), start=1_000)
    consumer = on.consumer()
    for _ in range(200):
        if draw.random() < 0.1:
            on.fate.commits, on.fate.killed_at, on.fate.through = 0, 1, draw.choice([0, 1_000])
            try:
                consumer.step()
            except Killed:
                consumer = on.consumer()
            on.fate.killed_at = -1
        consumer.step()
        on.now += 20 * MINUTE
        if consumer_state(on.engine.store, consumer.handler.name).position == len(on.all()):
            break
    events = on.all()
    assert on.service.positions() == set(range(1, len(events) + 1))
    for content, sent in on.service.got:
        recorded = events[content["position"] - 1]
        person = on.engine.reader.person_of(recorded)
        assert msgspec.convert(content["event"], EventView) == event_view(recorded, person.id)
        assert content["workspace"] == "default"
        if ordered:
            assert (sent["MessageGroupId"], sent["MessageDeduplicationId"]) == (person.id, recorded.id)


def test_fifo_topic_gets_each_person_in_the_order_of_the_feed() -> None:
    on = Stage(Service(Random(1)), ARN + ".fifo")
    on.record(*["x"] * 35)
    on.consumer().step()
    assert [content["position"] for content, _ in on.service.got] == list(range(1, 36))


def test_large_events_are_sent_in_calls_that_are_not_too_large() -> None:
    on = Stage(Service(Random(1)))
    on.record(*["x" * 30_000] * 25)
    on.consumer().step()
    assert len(on.service.got) == 25


def test_queue_gets_what_may_change_its_projection_only() -> None:
    on = Stage(Service(Random(1)), touching="features")
    on.record("a", type="purchase_completed")
    on.engine.recorder.record([staging.event("threadline_unknown_type", {"user_id": "p1"}, "k9")])
    catalogue = on.engine.catalogue
    wanted = [p for p, each in enumerate(on.all(), 1) if catalogue.touches(each.event.type, "features")]
    consumer = on.consumer()
    while consumer.step():
        pass
    assert on.service.positions() == set(wanted)
    (content, sent) = on.service.got[0]
    assert "features" in content["touches"]
    assert "features" in json.loads(sent["MessageAttributes"]["touches"]["StringValue"])


def test_topic_and_queues_of_the_settings_are_worked_by_the_dispatcher_up_to_subscribers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": aws().endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    sns, sqs = aws().client("sns"), aws().client("sqs")
    arn = sns.create_topic(Name="published")["TopicArn"]
    urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("all", "features", "memory-direct")}
    for name, policy in (("all", None), ("features", {"touches": ["features"]})):
        own = sqs.get_queue_attributes(QueueUrl=urls[name], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        more = {"RawMessageDelivery": "true"} | ({"FilterPolicy": json.dumps(policy)} if policy else {})
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=own, Attributes=more)
    on = Stage(None)
    on.record("a", "b", type="purchase_completed")
    on.record("c", type="seen", start=50)
    settings = load({"events_topic": arn, "memory_queue": urls["memory-direct"]}, onto=Settings())
    dispatcher = open_dispatcher(on.engine, settings)
    while dispatcher.run_once():
        pass

    def positions(name: str) -> set[int]:
        found: set[int] = set()
        while True:
            answer = sqs.receive_message(QueueUrl=urls[name], MaxNumberOfMessages=10)
            if not answer.get("Messages"):
                return found
            found |= {json.loads(each["Body"])["position"] for each in answer["Messages"]}

    def touching(projection: str) -> set[int]:
        touches = on.engine.catalogue.touches
        return {p for p, each in enumerate(on.all(), 1) if touches(each.event.type, projection)}

    assert positions("all") == set(range(1, len(on.all()) + 1))
    assert positions("features") == touching("features")
    assert positions("memory-direct") == touching("memory")


@pytest.mark.parametrize("given", [{"events_topic": "lead-events"}, {"memory_queue": "memory-processing"}])
def test_what_is_no_topic_or_queue_is_refused(given: dict[str, str]) -> None:
    on = Stage(None)
    with pytest.raises(InvalidSetting, match="is not the"):
        open_dispatcher(on.engine, load(given, onto=Settings()))


def test_refusal_says_which_permission_is_missing_and_loses_nothing() -> None:
    from botocore.exceptions import ClientError

    class Denied:
        def publish_batch(self, **given: Any) -> Any:
            raise ClientError({"Error": {"Code": "AuthorizationError", "Message": "no"}}, "Publish")

    on = Stage(Denied())
    on.record("a")
    on.consumer().step()
    state = consumer_state(on.engine.store, "topic:lead-events")
    assert "sns:Publish is not permitted" in state.problem
    assert "Allow sns:Publish on it" in state.problem
    on.service = Service(Random(1))
    on.now += 20 * SECOND
    assert on.consumer().step() == len(on.all())
