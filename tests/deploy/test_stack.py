"""An event through everything that the template makes, on MiniStack: real functions, emulated services.

The functions run under the template's roles, whose policies the emulator evaluates, so a permission that is missing
fails here. What a permission allows too much does not; that is `test_template`.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

import threadline
from tests.deploy.stack import NAME, SECONDS_MAX, Stack
from tests.deploy.template import of_type
from threadline.stores.dynamodb.store import migrate

SEGMENT = "segments: {active: {when: {field: features.recency_days, less_than: 3}}}\n"
"""Somebody who is in it leaves by a timer."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    definitions = tmp_path_factory.mktemp("stack") / "threadline.yaml"
    definitions.write_text(SEGMENT)
    with pytest.MonkeyPatch.context() as environment:
        # The owner of the account, for the store that the test itself opens.
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        made = Stack(definitions)
        yield made
        made.server.stop()


def until(stack: Stack, true: Callable[[], bool]) -> None:
    """Wait; a failure shows what the functions have logged."""
    deadline = time.monotonic() + SECONDS_MAX
    while not true():
        assert time.monotonic() < deadline, [stack.log(each) for each in ("http", "ingest", "streams", "schedule")]
        time.sleep(0.2)


def purchase(key: str) -> str:
    body = {"type": "track", "event": "purchase_completed", "userId": "ada", "messageId": key}
    return json.dumps({**body, "properties": {"total": 10, "currency": "EUR"}})


def post(stack: Stack, path: str, body: str, write_key: str) -> dict[str, object]:
    """Through the API, as a client of Segment does."""
    basic = base64.b64encode(f"{write_key}:".encode()).decode()
    headers = {"Host": urlsplit(stack.outputs["Url"]).netloc, "Authorization": f"Basic {basic}"}
    request = urllib.request.Request(stack.server.endpoint + path, body.encode(), headers)
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        content: dict[str, object] = json.load(answer)
    return content


def bought(stack: Stack, key: str) -> None:
    """Send a purchase: the tests of this file may run in several processes, each with a stack of its own."""
    with threadline.open(stack.store) as engine:
        secret = engine.keys.create(name=key).secret
    assert post(stack, "/v1/track", purchase(key), secret)["accepted"] == 1


class Came:
    """The purchases of which a consumer has been notified. Entering the segment is an event as well."""

    def __init__(self, stack: Stack, queue: str) -> None:
        self._stack, self._queue = stack, queue
        self.orders: list[str] = []

    def both(self) -> bool:
        """Take what is there."""
        events = [json.loads(each)["event"] for each in self._stack.messages(self._queue)]
        self.orders += [each["key"] for each in events if each["type"] == "purchase_completed"]
        return len(self.orders) >= 2


def test_the_table_is_the_one_that_migrate_makes(stack: Stack) -> None:
    # MiniStack leaves these two out when CloudFormation makes a table.
    assert migrate(stack.store) == ["switched expiry on", "switched point-in-time recovery on"]
    table = of_type("AWS::DynamoDB::Table")["Table"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_events_by_http_and_by_queue_come_out_once_and_poison_is_among_the_dead(stack: Stack) -> None:
    with threadline.open(stack.store) as engine:
        key = engine.keys.create(name="shop").secret
    client, queue = stack.client("sqs"), stack.outputs["IngestionQueueUrl"]
    client.send_message(QueueUrl=queue, MessageBody=purchase("order-1"))
    answer = post(stack, "/v1/track", purchase("order-2"), key)
    assert answer["accepted"] == 1

    for name in ("MemoryQueue", "FeatureQueue"):
        came = Came(stack, name)
        until(stack, came.both)
        assert sorted(came.orders) == ["order-1", "order-2"]
    with threadline.open(stack.store) as engine:
        assert engine.features.of("ada").features["monetary_total"].value == 20
    # Given up on at once: five attempts with six minutes between them are too long for a test.
    redrive = json.loads(
        client.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]["RedrivePolicy"]
    )
    hurried = {"VisibilityTimeout": "1", "RedrivePolicy": json.dumps({**redrive, "maxReceiveCount": 1})}
    client.set_queue_attributes(QueueUrl=queue, Attributes=hurried)
    client.send_message(QueueUrl=queue, MessageBody="poison")
    dead: list[str] = []
    until(stack, lambda: bool(dead.extend(stack.messages("IngestionDeadLetters")) or dead))
    assert dead == ["poison"]
    with threadline.open(stack.store) as engine:
        until(stack, lambda: len(engine.rejected.list().entries) == 1)
    assert stack.messages("FailedInvocations") == []


def test_a_timer_asks_for_a_wake_up_and_the_daily_schedule_calls_its_function(stack: Stack) -> None:
    bought(stack, "timer")
    scheduler = stack.client("scheduler")
    daily = scheduler.get_schedule(GroupName=NAME, Name=f"{NAME}-daily")
    assert daily["ScheduleExpression"] == "cron(0 6 * * ? *)"
    answer = stack.invoke(daily["Target"]["Arn"], {})
    assert set(answer) == {"done", "wake_at"}
    assert str(answer["wake_at"]) > "2026"
    names = {each["Name"] for each in scheduler.list_schedules(GroupName=NAME)["Schedules"]}
    assert {each for each in names if each.startswith("threadline-")}, "leaving the segment is due in three days"


def test_the_lake_has_every_event_in_files_of_the_bucket(stack: Stack) -> None:
    bought(stack, "lake")
    schedule = stack.client("scheduler").get_schedule(GroupName=NAME, Name=f"{NAME}-lake")
    answer = stack.invoke(schedule["Target"]["Arn"], {})
    with threadline.open(stack.store) as engine:
        events = engine.events.feed(limit=100).events
    assert answer == {"events": len(events), "position": len(events), "complete": True}
    bucket, prefix = stack.outputs["Lake"].removeprefix("s3://").split("/", 1)
    names = [each["Key"] for each in stack.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]]
    assert f"{prefix}/_manifest.json" in names
    assert any(each.endswith(".parquet") for each in names)


def test_a_scheduled_call_that_fails_in_its_function_is_among_the_failed_invocations(stack: Stack) -> None:
    client, name = stack.client("lambda"), f"{NAME}-schedule"
    handler = client.get_function_configuration(FunctionName=name)["Handler"]
    client.update_function_configuration(FunctionName=name, Handler="threadline.surfaces.lambda_.nowhere.handler")
    try:
        # As Scheduler does: without waiting for the answer.
        client.invoke(FunctionName=name, InvocationType="Event", Payload=b"{}")
        failed: list[str] = []
        until(stack, lambda: bool(failed.extend(stack.messages("FailedInvocations")) or failed))
    finally:
        client.update_function_configuration(FunctionName=name, Handler=handler)
    assert name in json.loads(failed[0])["requestContext"]["functionArn"]
