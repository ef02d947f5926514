"""The functions on one table, each in a process of its own that is frozen between two calls: emulated services."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.aws import aws
from tests.servers.dynamodb import ministack
from tests.surfaces.lambda_stage import payload
from tests.surfaces.test_lambda_sqs import bought, message
from threadline.app import composition
from threadline.kernel.store import feed_pages
from threadline.kernel.time import DAY, system_clock
from threadline.settings import Settings
from threadline.surfaces.lambda_ import http, sqs
from threadline.surfaces.lambda_.runtime import Runtime
from threadline.surfaces.lambda_.schedules import WakeUps, scheduler_client
from threadline.surfaces.lambda_.streams import follow

TARGET = "arn:aws:lambda:eu-west-1:000000000000:function:schedule"
KEY = "a-key-of-the-shop"


class _Functions:
    def __init__(self, folder: Path) -> None:
        self.table = ministack().made(folder)
        services = {name: aws().client(name) for name in ("sns", "sqs", "scheduler")}
        self.queue = services["sqs"].create_queue(QueueName="consumer")["QueueUrl"]
        arn = services["sqs"].get_queue_attributes(QueueUrl=self.queue, AttributeNames=["QueueArn"])
        topic = services["sns"].create_topic(Name="lead-events")["TopicArn"]
        services["sns"].subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint=arn["Attributes"]["QueueArn"],
            Attributes={"RawMessageDelivery": "true"},
        )
        services["scheduler"].create_schedule_group(Name="together")
        (folder / "definitions.yaml").write_text("feature_updates: {at: '06:00', features: [has_purchased]}\n")
        self.settings = Settings(
            store=self.table,
            definitions=str(folder / "definitions.yaml"),
            write_keys=f"shop={KEY}",
            access_log=False,
            events_topic=topic,
            schedule_group="together",
            schedule_target=TARGET,
            schedule_role="arn:aws:iam::1:role/r",
        )
        self.services = services
        self.opened: list[Runtime] = []

    def process(self) -> Runtime:
        """A new process."""
        made = Runtime(composition(), self.settings)
        made.engine.store._journal.beat = lambda: None  # type: ignore[attr-defined] — as it is while it is frozen
        self.opened.append(made)
        return made

    def published(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while page := self.services["sqs"].receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(each["Body"]) for each in page]
            for each in page:
                self.services["sqs"].delete_message(QueueUrl=self.queue, ReceiptHandle=each["ReceiptHandle"])
        return found


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Functions]:
    for name, value in {
        "AWS_ENDPOINT_URL": aws().endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    made = _Functions(tmp_path)
    yield made
    for each in made.opened:
        each.close()


def test_what_requests_and_messages_record_is_published_once_and_the_daily_job_asks_to_be_woken(
    functions: _Functions,
) -> None:
    requests, messages, stream = functions.process(), functions.process(), functions.process()
    web, queue = http.HttpFunction(requests), sqs.QueueFunction(messages)
    wake_ups = WakeUps(functions.settings, scheduler_client)
    for start in (0, 20):
        batch = {"writeKey": KEY, "batch": [bought(number) for number in range(start, start + 15)]}
        assert web.answer(payload("POST", "/v1/batch", body=json.dumps(batch).encode()))["statusCode"] == 200
        taken = queue.answer({"Records": [message(str(n), bought(n)) for n in range(start + 10, start + 20)]})
        messages.rest()
        assert taken == {"batchItemFailures": []}
        assert stream.engine.store._journal.register().words == {}, "who is frozen has left before"
        assert follow(stream, wake_ups, {"Records": []}, time.monotonic() + 60) == {"batchItemFailures": []}
        stream.rest()
    entries = [each.entry.id for each in feed_pages(stream.engine.store)]
    published = functions.published()
    in_order = sorted(published, key=lambda each: each["position"])
    assert [each["event"]["id"] for each in in_order] == entries
    assert len(entries) == 50, "a key counts within its source"
    [schedule] = functions.services["scheduler"].list_schedules(GroupName="together")["Schedules"]
    expression = functions.services["scheduler"].get_schedule(Name=schedule["Name"], GroupName="together")[
        "ScheduleExpression"
    ]
    assert expression.endswith("T06:00:00)"), "when features are published next"
    assert stream.engine.jobs.get("default", "feature_updates").due_at <= system_clock() + DAY
    web.close()
