"""Queues of SQS worked off: deleted once durable, parked with the reason, and nothing lost while the store is away."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from tests.laws import staging
from tests.mortal import Fate
from tests.servers.aws import aws
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack_event
from threadline.kernel.errors import Forbidden, InvalidSetting, NotFound, Unavailable
from threadline.kernel.store import feed_pages
from threadline.settings import Settings, load
from threadline.surfaces.queues.bodies import Pointer
from threadline.surfaces.queues.intake import EventIntake, Payload, no_payloads
from threadline.surfaces.queues.payloads import payloads
from threadline.surfaces.queues.sqs import SqsQueue
from threadline.surfaces.queues.worker import QueueWorker

POINTER = "software.amazon.payloadoffloading.PayloadS3Pointer"


def native(number: int) -> str:
    return json.dumps({"type": "seen", "identifiers": {"user_id": f"p{number % 3}"}, "key": f"k{number}"})


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a worker soon sees that it is told to stop."""
    monkeypatch.setattr("threadline.surfaces.queues.worker.WAIT_SECONDS", 1)


class Stage:
    """A queue with a dead-letter queue, and a store."""

    def __init__(self, name: str, *, redrive: bool = True, fifo: bool = False, visibility: int = 60) -> None:
        self.client: Any = aws().client("sqs")
        more = {"FifoQueue": "true"} if fifo else {}
        end = ".fifo" if fifo else ""
        self.dead = self.client.create_queue(QueueName=f"{name}-dead{end}", Attributes=more)["QueueUrl"]
        arn = self.attributes(self.dead)["QueueArn"]
        if redrive:
            more |= {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1000"})}
        more |= {"VisibilityTimeout": str(visibility)}
        self.url = self.client.create_queue(QueueName=f"{name}{end}", Attributes=more)["QueueUrl"]
        self.engine: Engine = staging.engine(clock=staging.ticking())

    def attributes(self, url: str) -> dict[str, str]:
        found: dict[str, str] = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return found

    def send(self, *bodies: str, **more: Any) -> None:
        for body in bodies:
            self.client.send_message(QueueUrl=self.url, MessageBody=body, **more)

    def worker(self, payload: Payload = no_payloads, threads: int = 1) -> QueueWorker:
        queue = SqsQueue(self.url, aws().queue_calls())
        return QueueWorker(queue, EventIntake(self.engine, "default", queue.name, payload), threads)

    def run(self, worker: QueueWorker) -> None:
        while worker.take_some(wait_seconds=0):
            pass

    @property
    def left(self) -> tuple[int, int]:
        """Messages in the queue: waiting, and received but not deleted."""
        found = self.attributes(self.url)
        waiting, in_flight = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
        return int(found[waiting]), int(found[in_flight])

    @property
    def parked(self) -> list[dict[str, Any]]:
        answer = self.client.receive_message(
            QueueUrl=self.dead, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0
        )
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

    @property
    def keys(self) -> list[str]:
        return [unpack_event(each.entry).event.key for each in feed_pages(self.engine.store)]


def test_messages_are_recorded_and_deleted_and_poison_is_parked_with_its_reason() -> None:
    on = Stage("usual")
    on.send(*map(native, range(25)), "poison", native(3))
    on.send("[]x", MessageAttributes={"trace": {"DataType": "String", "StringValue": "abc"}})
    on.run(on.worker())
    assert sorted(on.keys) == sorted(f"k{n}" for n in range(25))
    assert on.left == (0, 0)
    parked = {each["Body"]: each["MessageAttributes"] for each in on.parked}
    assert parked.keys() == {"poison", "[]x"}
    assert parked["poison"]["ThreadlineCode"]["StringValue"] == "invalid_json"
    assert "malformed" in parked["poison"]["ThreadlineReason"]["StringValue"]
    assert parked["[]x"]["trace"]["StringValue"] == "abc"
    assert len(on.engine.rejected.page("default")) == 2
    assert on.engine.log.event("default", next(iter(feed_pages(on.engine.store))).entry.id).event.source == "usual"


def test_poison_of_a_queue_without_dead_letters_is_in_the_rejected_log_only() -> None:
    on = Stage("no-redrive", redrive=False)
    on.send("poison")
    on.run(on.worker())
    assert on.left == (0, 0)
    assert [entry.payload for _, entry in on.engine.rejected.page("default")] == ["poison"]


def test_fifo_queue_parks_in_a_fifo_queue() -> None:
    on = Stage("ordered", fifo=True)
    for number, body in enumerate([native(1), "poison", native(2)]):
        on.send(body, MessageGroupId=f"g{number}", MessageDeduplicationId=str(number))
    on.run(on.worker())
    assert sorted(on.keys) == ["k1", "k2"]
    assert [each["Body"] for each in on.parked] == ["poison"]


def test_store_that_is_away_keeps_the_messages_in_hand_and_gives_them_back_at_the_end() -> None:
    on = Stage("away")
    on.send(*map(native, range(3)))
    fate = Fate(on.engine.store)
    fate.unavailable = True
    worker, stopping = on.worker(), threading.Event()
    worker.start(stopping)
    asked, count = threading.Event(), [0]
    commit = on.engine.store.commit

    def counted(batches: Any) -> Any:
        count[0] += 1
        if count[0] > 1:
            asked.set()
        return commit(batches)

    on.engine.store.commit = counted  # type: ignore[method-assign]
    assert asked.wait(20)
    assert on.left == (0, 3)
    stopping.set()
    worker.finish()
    assert on.left == (3, 0)
    fate.unavailable = False
    on.run(on.worker())
    assert (len(on.keys), on.left) == (3, (0, 0))


def test_messages_that_take_longer_than_their_visibility_are_taken_once() -> None:
    on = Stage("slow", visibility=1)
    on.send(native(1), "poison")
    commit, slow = on.engine.store.commit, [True]

    def slowly(batches: Any) -> Any:
        if slow.pop() if slow else False:
            time.sleep(2.5)
        return commit(batches)

    on.engine.store.commit = slowly  # type: ignore[method-assign]
    worker, stopping = on.worker(threads=2), threading.Event()
    worker.start(stopping)
    deadline = time.monotonic() + 60
    while sum(on.left) and time.monotonic() < deadline:
        time.sleep(0.05)
    stopping.set()
    worker.finish()
    assert (on.keys, on.left, len(on.parked)) == (["k1"], (0, 0), 1)


def test_messages_go_in_once_the_store_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.surfaces.queues.worker.PAUSE_SECONDS", 0.01)
    on = Stage("back")
    on.send(*map(native, range(3)))
    fate = Fate(on.engine.store)
    commit = on.engine.store.commit
    refused = [0]

    def away_twice(batches: Any) -> Any:
        if refused[0] < 2:
            refused[0] += 1
            raise Unavailable("the store is away")
        return commit(batches)

    on.engine.store.commit = away_twice  # type: ignore[method-assign]
    worker = on.worker()
    assert worker.take_some(0) == 3
    assert (len(on.keys), on.left, fate.commits > 0) == (3, (0, 0), True)


def test_payloads_are_read_from_the_buckets_that_the_settings_name() -> None:
    on, s3 = Stage("large"), aws().client("s3")
    for bucket in ("ours", "theirs"):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        s3.put_object(Bucket=bucket, Key="a/1", Body=json.dumps({"events": [json.loads(native(n)) for n in range(4)]}))
    s3.put_object(Bucket="ours", Key="a/large", Body=b"[" * (4 * 1_024 * 1_024 + 1))
    settings = load({"payload_buckets": "ours, other"}, onto=Settings())
    for bucket, key in (("ours", "a/1"), ("theirs", "a/1"), ("ours", "a/2"), ("ours", "a/large")):
        on.send(json.dumps([POINTER, {"s3BucketName": bucket, "s3Key": key}]))
    on.run(on.worker(payloads(settings, s3)))
    assert len(on.keys) == 4
    assert on.left == (0, 0)
    assert sorted(each["MessageAttributes"]["ThreadlineCode"]["StringValue"] for each in on.parked) == [
        "payload_missing",
        "payload_missing",
        "too_large",
    ]
    with pytest.raises(NotFound):
        payloads(Settings())(Pointer("ours", "a/1"))


class Refusing:
    """A client whose calls are refused as the service refuses them."""

    def __init__(self, error: Exception, at: str = "") -> None:
        self.error, self.at = error, at

    def __getattr__(self, name: str) -> Any:
        def call(**given: Any) -> Any:
            if not self.at or name == self.at:
                raise self.error
            return {}

        return call


def refusal(code: str, operation: str) -> Exception:
    from botocore.exceptions import ClientError

    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/lead-ingestion"


@pytest.mark.parametrize(
    ("client", "error", "says"),
    [
        (Refusing(refusal("AccessDenied", "GetQueueAttributes")), Forbidden, "sqs:GetQueueAttributes is not permitted"),
        (Refusing(refusal("AccessDenied", "ReceiveMessage"), "receive_message"), Forbidden, "sqs:ReceiveMessage"),
        (Refusing(refusal("InvalidClientTokenId", "GetQueueAttributes")), InvalidSetting, "credentials"),
        (Refusing(refusal("AWS.SimpleQueueService.NonExistentQueue", "X")), NotFound, "lead-ingestion does not exist"),
        (Refusing(refusal("OverLimit", "ReceiveMessage"), "receive_message"), Unavailable, "OverLimit"),
    ],
)
def test_errors_of_sqs_say_what_is_missing(client: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        SqsQueue(URL, client).receive(0)


def test_queue_that_is_not_there_and_text_that_is_no_url_are_refused() -> None:
    with pytest.raises(NotFound, match="does not exist"):
        SqsQueue(f"{aws().endpoint}/000000000000/nowhere", aws().client("sqs"))
    with pytest.raises(InvalidSetting, match="not the URL of a queue"):
        SqsQueue("lead-ingestion", aws().client("sqs"))
