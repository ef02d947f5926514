"""Schemas of events, whichever way an event comes in: an outcome for each, the rejected log, what puts it right."""

from __future__ import annotations

import contextlib
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

import threadline
from tests.surfaces.appaction_stage import ACTION, USER, as_user, settings
from tests.surfaces.conftest import Clock, Keys, client_of
from threadline.app import composition, open_engine
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidDefinition
from threadline.settings import Settings
from threadline.surfaces.cli.program import Start, run
from threadline.surfaces.cli.program import threadline as program

SCHEMAS = """
event_schemas:
  purchase_completed: {required: [total], properties: {total: {type: number}, currency: {enum: [EUR, USD]}}}
  identify: {properties: {plan: {enum: [free, pro]}}}
  app_action: {properties: {application_id: {const: web}}}
  group: {required: [name]}
  com.shop.order: {properties: {n: {minimum: 1}}}
  fact_remembered: {properties: {key: {pattern: '^[a-z]+$'}}}
  tag_added: {properties: {tag: {enum: [vip]}}}
"""
MISSING = 'properties: "total" is a required property'


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    (tmp_path / "threadline.yaml").write_text(SCHEMAS)
    return tmp_path / "threadline.yaml"


@pytest.fixture
def engine(clock: Clock, definitions: Path) -> Iterator[Engine]:
    made = open_engine("memory:", Settings(), clock, definitions)
    yield made
    made.close()


@pytest.fixture
def basic(keys: Keys) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{keys.write}:'.encode()).decode()}"}


def types(engine: Engine) -> list[str]:
    return [engine.log.read(each).event.type for each in engine.log.feed()]


def order(key: str, name: str = "Order Completed", **properties: Any) -> dict[str, Any]:
    return {"type": "track", "userId": "1", "event": name, "messageId": key, "properties": properties}


def test_of_a_batch_only_what_does_not_fit_is_rejected(
    client: TestClient, keys: Keys, engine: Engine, basic: dict[str, str]
) -> None:
    batch = [
        order("a", revenue=1),  # `revenue` is the total of Segment's specification
        order("b", revenue="1"),
        order("c", "Purchase Completed", total=2, currency="EUR"),
        order("d", "purchase_completed", currency="CHF"),
        {"type": "identify", "userId": "1", "messageId": "e", "traits": {"plan": "gold"}},
        {"type": "group", "userId": "1", "groupId": "g", "messageId": "f"},
        {"type": "page", "userId": "1", "messageId": "g"},
        {"type": "track", "userId": "1", "messageId": "h"},
    ]
    said = client.post("/v1/batch", json={"batch": batch}, headers=basic)
    assert said.status_code == 200
    assert said.json()["accepted"] == 3
    assert {each["index"]: (each["code"], each["message"]) for each in said.json()["rejected"]} == {
        1: ("schema_violation", 'properties.total: the value is not of type "number"'),
        3: (
            "schema_violation",
            f'{MISSING}; properties.currency: the value is not one of "EUR" or "USD"',
        ),
        4: ("schema_violation", 'properties.plan: the value is not one of "free" or "pro"'),
        5: ("schema_violation", 'properties: "name" is a required property'),
        7: ("no_event_name", "a track call needs `event`, the name of what happened"),
    }
    assert types(engine) == ["purchase_completed", "purchase_completed", "page"]
    entries = client.get("/v1/rejected", headers=keys.bearer("read")).json()["entries"]
    assert sorted(each["code"] for each in entries) == ["no_event_name", *["schema_violation"] * 4]
    # A retry of the whole batch is told the same, and adds nothing.
    again = client.post("/v1/batch", json={"batch": batch}, headers=basic).json()
    assert (again["duplicates"], len(again["rejected"])) == (3, 5)
    assert len(client.get("/v1/rejected", headers=keys.bearer("read")).json()["entries"]) == 5


def test_what_was_rejected_is_put_right(client: TestClient, keys: Keys, engine: Engine, basic: dict[str, str]) -> None:
    for key in ("a", "b"):
        said = client.post("/v1/track", json=order(key, currency="EUR"), headers=basic).json()
        assert said["rejected"][0]["message"] == MISSING
    about = client.get("/v1/messages/a", headers=keys.bearer("read")).json()
    assert (about["outcome"], about["rejected"][0]["code"]) == ("rejected", "schema_violation")
    entries = client.get("/v1/rejected", headers=keys.bearer("read")).json()["entries"]
    first, second = sorted(entries, key=lambda entry: str(entry["payload"]["key"]))

    def resubmit(entry: dict[str, Any], **correction: Any) -> Any:
        address = f"/v1/rejected/{entry['id']}/resubmit"
        return client.post(address, json=correction, headers=keys.bearer("admin")).json()

    still = resubmit(first)
    assert (still["receipt"]["code"], still["entry"]["status"]) == ("schema_violation", "open")
    payload = {**first["payload"], "properties": {**first["payload"]["properties"], "total": 1}}
    assert resubmit(first, payload=payload)["entry"]["status"] == "resubmitted"
    native = {"type": "purchase_completed", "identifiers": {"user_id": "1"}, "properties": {"total": 2}}
    assert resubmit(second, event=native)["receipt"]["status"] == "accepted"
    assert types(engine) == ["purchase_completed"] * 2
    # The producer's own retry, put right there as well, is known.
    again = client.post("/v1/track", json=order("a", currency="EUR", total=1), headers=basic).json()
    assert (again["duplicates"], again["conflicts"]) == (1, 0)


def test_cloudevents_native_events_and_actions_are_asked_too(
    client: TestClient, keys: Keys, engine: Engine, clock: Clock
) -> None:
    headers = {**keys.bearer("writer"), "Content-Type": "application/cloudevents-batch+json"}
    events = [
        {"specversion": "1.0", "id": f"{n}", "source": "/s", "type": "com.shop.order", "subject": "1", "data": {"n": n}}
        for n in (0, 1)
    ]
    said = client.post("/v1/cloudevents", content=json.dumps(events), headers=headers).json()
    assert (said["accepted"], said["rejected"][0]["code"]) == (1, "schema_violation")
    native = [
        {"type": "purchase_completed", "identifiers": {"user_id": "1"}, "key": f"k{n}", "properties": properties}
        for n, properties in enumerate(({}, {"total": 1}))
    ]
    told = client.post("/v1/events", json={"events": native}, headers=keys.bearer("writer")).json()
    assert [each["status"] for each in told["receipts"]] == ["rejected", "accepted"]
    with client_of(engine, settings()) as ux:
        refused = ux.post(USER, json={**ACTION, "applicationId": "app"}, headers=as_user(clock))
        said = refused.json()
        assert (refused.status_code, said["code"]) == (400, "schema_violation")
        assert said["detail"] == 'properties.application_id: "web" was expected'
        assert ux.post(USER, json=ACTION, headers=as_user(clock)).status_code == 200
    assert types(engine) == ["com.shop.order", "purchase_completed", "app_action"]


def called(folder: Path, *command: str) -> Result:
    with contextlib.chdir(folder):  # where the definitions are
        return CliRunner().invoke(program, command, obj=Start(composition))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (("--type", "preference", "--key", "No 1"), ("--type", "preference", "--key", "colour")),
        (("--add", "VIP"), ("--add", "vip")),
    ],
    ids=["remember", "tag"],
)
def test_what_an_operation_records_for_a_caller_is_asked(
    wrong: tuple[str, ...], right: tuple[str, ...], tmp_path: Path, definitions: Path
) -> None:
    with threadline.open(tmp_path / "shop.db", definitions=definitions) as shop:
        shop.track("1", "page", key="1")
    remember = ("memory", "remember", "user_id:1", "--value", '"x"')
    start = remember if "--type" in wrong else ("people", "tag", "user_id:1")
    refused = called(tmp_path, *start, *wrong, "--file", "shop.db")
    assert refused.exit_code == 1
    assert "schema_violation" in refused.output
    assert called(tmp_path, *start, *right, "--file", "shop.db").exit_code == 0


def test_the_schemas_are_told_to_whoever_asks(client: TestClient, keys: Keys) -> None:
    told = client.get("/v1/catalogue", headers=keys.bearer("read")).json()["event_schemas"]
    assert told["identify"] == {"properties": {"plan": {"enum": ["free", "pro"]}}}
    assert len(told) == 7


def test_rows_of_an_import_are_asked(tmp_path: Path, definitions: Path) -> None:
    (tmp_path / "orders.csv").write_text(
        "order,day,customer,currency,total\n1,2026-01-01,ada,EUR,10\n2,2026-01-02,ada,CHF,20\n3,2026-01-03,bob,EUR,30\n"
    )
    (tmp_path / "orders.yaml").write_text(
        "{type: purchase_completed, user_id: customer, time: day, key: [order],"
        " properties: {total: {column: total, number: true}, currency: currency}}"
    )
    command = ["import", "orders.csv", "--map", "orders.yaml", "--file", "shop.db"]
    done = called(tmp_path, *command)
    assert "2 accepted, 0 known already, 0 in conflict, 1 rejected" in done.output
    assert 'properties.currency: the value is not one of "EUR" or "USD"' in done.output
    with threadline.open(tmp_path / "shop.db", definitions=definitions, source="import") as shop:
        [entry] = shop.rejected.list().entries
        corrected = entry.payload | {"properties": {"total": 20, "currency": "EUR"}}
        assert shop.rejected.resubmit(entry.id, payload=corrected).receipt.status == "accepted"
        assert shop.features.of("user_id:ada").features["frequency_purchases_90d"].status == "PRESENT"


def test_a_program_does_not_start_with_a_schema_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text("event_schemas: {page: {$ref: 'https://example.com/x.json'}}")
    with pytest.raises(InvalidDefinition, match=r"threadline.yaml:1: event schema 'page': .* nothing is fetched"):
        threadline.open(tmp_path / "shop.db", definitions=tmp_path / "threadline.yaml")
    assert not (tmp_path / "shop.db").exists()


def test_each_mistake_is_told_on_a_line_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "threadline.yaml").write_text("event_schemas:\n  page: {typ: object}\n  click: {requird: [n]}\n")
    with contextlib.chdir(tmp_path):
        assert run(composition, ["serve", "--port", "0"]) == 1
        first, second = capfd.readouterr().err.splitlines()
        assert first.startswith("Error: threadline.yaml:2: event schema 'page': unknown keyword 'typ'")
        assert second.startswith("threadline.yaml:3: event schema 'click': unknown keyword 'requird'")
        assert run(composition, ["doctor"]) == 1
        told = capfd.readouterr().out
    assert "\\x0a" not in told
    assert any(line.strip().startswith("threadline.yaml:3:") for line in told.splitlines())
