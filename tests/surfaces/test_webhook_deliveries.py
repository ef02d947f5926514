"""Deliveries of webhooks: each attempt with request and answer, sent again once, bounded, and gone with the person; on
every store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import threadline
from tests.senders.receiver import Answer, Receiver
from tests.servers import dynamodb, postgres
from tests.surfaces.conftest import Clock
from threadline.app import open_dispatcher
from threadline.capabilities.operate.effects.personal import DELIVERIES_FILE
from threadline.engine.delivery import attempts
from threadline.engine.delivery.attempts import ATTEMPT, ATTEMPT_TIME, trim
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.limits import DELIVERIES_DAYS
from threadline.kernel.personal import Subject
from threadline.kernel.time import DAY, HOUR, SECOND
from threadline.settings import Settings

SECRET = "a secret of the query"
DEFINITIONS = """
destinations:
  crm: {{url: "{url}?key={secret}", secrets: [env:CRM_SECRET], give_up_after: 2h}}
rules:
  orders:
    version: 1
    conditions: {{field: event.type, equals: order}}
    actions: [{{call_webhook: {{destination: crm, payload: {{note: "${{event.properties.note}}"}}}}}}]
rule_sets:
  all: {{events: [order], rules: [orders]}}
"""
STORES: dict[str, Callable[[Path], str]] = {
    "memory": lambda folder: "memory:",
    "sqlite": lambda folder: str(folder / "shop.db"),
    "postgres": lambda folder: postgres.server("18").made(postgres.schema_of(folder)),
    "dynamodb": lambda folder: dynamodb.ministack().made(folder),
}
"""Store -> an address of a new one that stands for a folder."""
FAILURE: Answer = (500, {}, b"<b>out of order</b>" + b"x" * 5_000)
OK: Answer = (204, {}, b"")


class Stage(NamedTuple):
    """A shop whose webhooks go to a receiver."""

    shop: Any
    receiver: Receiver
    answers: list[Answer]
    """What the receiver answers next; then that all is well."""
    dispatcher: Dispatcher
    clock: Clock

    def deliveries(self, **params: Any) -> list[dict[str, Any]]:
        return [_plain(line) for line in self.shop.webhooks.deliveries(**params).deliveries]

    def work(self) -> None:
        while self.dispatcher.run_once():
            pass


def _plain(line: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(line)
    return plain


@pytest.fixture(params=STORES)
def stage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("CRM_SECRET", "whsec_" + "A" * 32)
    clock, answers = Clock(), list[Answer]()
    with Receiver(lambda call: answers.pop(0) if answers else OK) as receiver:
        file = tmp_path / "threadline.yaml"
        file.write_text(DEFINITIONS.format(url=receiver.url(), secret=SECRET))
        settings = Settings(webhook_private_addresses="127.0.0.0/8", webhook_http=True, definitions=str(file))
        with threadline.open(
            STORES[request.param](tmp_path), definitions=str(file), clock=clock, settings=settings
        ) as shop:
            yield Stage(shop, receiver, answers, open_dispatcher(shop.engine, settings), clock)


def order(stage: Stage, user: str = "ada", note: str = "by phone") -> None:
    stage.shop.track(user, "order", {"note": note})
    stage.work()


def test_an_attempt_that_fails_is_shown_with_its_request_its_answer_and_the_next_one(stage: Stage) -> None:
    stage.answers.append(FAILURE)
    order(stage)
    [line] = stage.deliveries()
    assert (line["destination"], line["state"], line["status"], line["attempt"]) == ("crm", "failed", 500, 1)
    assert line["next_at"] > line["at"]
    shown = _plain(stage.shop.webhooks.delivery(id=line["id"]))
    [call] = stage.receiver.calls
    assert json.loads(shown["body"]) == json.loads(call.body)
    assert shown["headers"]["webhook-id"] == call.headers["webhook-id"] == line["effect"]
    assert shown["answer"].startswith("<b>out of order</b>")
    assert len(shown["answer"]) <= 2_000
    text = json.dumps(shown)
    assert SECRET not in text
    assert call.headers["webhook-signature"] not in text
    stage.clock.now += HOUR
    stage.work()
    assert [(line["state"], line["attempt"]) for line in stage.deliveries()] == [("delivered", 2), ("failed", 1)]
    assert [line["state"] for line in stage.deliveries(state="failed")] == ["failed"]
    assert stage.deliveries(destination="another") == []


def test_a_receiver_that_is_not_there_is_a_delivery_without_a_status(stage: Stage) -> None:
    stage.receiver.server.shutdown()
    stage.receiver.server.server_close()
    order(stage)
    [line] = stage.deliveries()
    assert (line["state"], line["status"]) == ("failed", 0)
    assert "refused" in line["problem"].lower()


def test_a_delivery_that_waits_is_sent_again_at_once_and_only_the_last_attempt(stage: Stage) -> None:
    stage.answers.append(FAILURE)
    order(stage)
    [first] = stage.deliveries()
    stage.shop.webhooks.send_again(id=first["id"])
    stage.work()
    assert len(stage.receiver.calls) == 2
    assert [line["state"] for line in stage.deliveries()] == ["delivered", "failed"]
    with pytest.raises(Conflict, match="attempted again since"):
        stage.shop.webhooks.send_again(id=first["id"])
    stage.clock.now += 3 * HOUR
    stage.work()
    assert len(stage.receiver.calls) == 2, "what was hastened is not tried a second time when it was due"


def test_a_delivery_that_was_given_up_on_is_sent_again_and_is_parked_no_more(stage: Stage) -> None:
    stage.answers.append((410, {}, b"gone"))
    order(stage)
    [line] = stage.deliveries()
    assert (line["status"], line["next_at"]) == (410, None)
    assert len(stage.shop.effects.parked().effects) == 1
    stage.shop.webhooks.start(name="crm")
    stage.shop.webhooks.send_again(id=line["id"])
    stage.work()
    assert stage.shop.effects.parked().effects == []
    assert stage.deliveries()[0]["state"] == "delivered"


def test_what_was_delivered_is_sent_again_with_its_id_and_once_for_two_who_ask(stage: Stage) -> None:
    order(stage)
    [line] = stage.deliveries()
    engine = stage.shop.engine
    last = engine.delivery.attempt("default", line["id"])
    stage.shop.webhooks.send_again(id=line["id"])
    stage.clock.now += SECOND
    with pytest.raises(Conflict, match="due already"):
        stage.shop.webhooks.send_again(id=line["id"])
    with pytest.raises(Conflict, match="due already"):
        engine.delivery.send_again(last, "whoever has read it before")
    assert [(line["state"], line["next_at"] is None) for line in stage.deliveries()] == [("delivered", False)]
    stage.work()
    first, second = stage.receiver.calls
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert [line["attempt"] for line in stage.deliveries()] == [2, 1]
    with pytest.raises(Conflict):
        engine.delivery.send_again(last, "ada")
    stage.shop.webhooks.send_again(id=stage.deliveries()[0]["id"])
    stage.work()
    assert len(stage.receiver.calls) == 3


def test_deliveries_go_with_their_person_and_stand_in_the_export(stage: Stage) -> None:
    order(stage, "ada", "ada's secret wish")
    order(stage, "bob", "bob's")
    engine = stage.shop.engine
    person = engine.reader.person("default", "user_id:ada")
    [entry] = DELIVERIES_FILE.lines(Subject(engine, person, stage.clock.now))
    assert "ada's secret wish" in entry["body"]
    stage.shop.people.erase("user_id:ada", reason="request")
    stage.work()
    assert len(stage.deliveries()) == 1
    for table in (ATTEMPT, ATTEMPT_TIME):
        assert len(list(stage.shop.engine.store.scan(table, limit=100))) == 1
    stored = b"".join(item.value for item in stage.shop.engine.store.scan(ATTEMPT, limit=100))
    assert b"secret wish" not in stored


def test_deliveries_are_bounded_by_number_and_age_and_failures_are_not_pushed_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "DELIVERIES_MAX", 5)
    stage.answers.append(FAILURE)
    for number in range(9):
        stage.clock.now += 1
        order(stage, f"u{number}")
    trim(stage.shop.engine.store, "default", stage.clock.now)
    states = [line["state"] for line in stage.deliveries()]
    assert (states.count("delivered"), states.count("failed")) == (5, 1)
    assert len(list(stage.shop.engine.store.scan(ATTEMPT, limit=100))) == 6
    stage.clock.now += (DELIVERIES_DAYS + 1) * DAY
    trim(stage.shop.engine.store, "default", stage.clock.now)
    assert stage.deliveries() == []
    assert list(stage.shop.engine.store.scan(ATTEMPT, limit=100)) == []


def test_pages_of_deliveries_go_on_where_the_last_one_ended(stage: Stage) -> None:
    stage.answers.extend([FAILURE, OK, FAILURE])
    for number in range(5):
        stage.clock.now += 1
        order(stage, f"u{number}")
    ids, cursor = [], ""
    while True:
        page = stage.shop.webhooks.deliveries(limit=2, cursor=cursor)
        ids += [line.id for line in page.deliveries]
        if not (cursor := page.next):
            break
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == 5


@pytest.mark.parametrize("id", ["8006517a5f8c4000.0123456789abcdef0123456789abcdef.00000"])
def test_a_delivery_that_is_not_there_is_not_found(stage: Stage, id: str) -> None:
    with pytest.raises(NotFound, match="older than 14 days"):
        stage.shop.webhooks.delivery(id=id)
