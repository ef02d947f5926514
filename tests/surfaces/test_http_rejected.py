"""The rejected log over HTTP: what it keeps of a request, and what becomes of it when it is re-submitted."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import NOW, Clock, Keys, client_of, keys_of
from tests.surfaces.segment_stage import basic
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.event import CLAIMED_HISTORY, Event, Identifier
from threadline.kernel.time import SECOND, format_time
from threadline.settings import Settings
from threadline.surfaces.http.events.ingest import REPEATS_AT_ONCE_MAX


def entries(client: TestClient, keys: Keys, **params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/rejected", params=params, headers=keys.bearer("read")).json()[
        "entries"
    ]
    return found


def resubmit(client: TestClient, keys: Keys, entry: dict[str, Any], **correction: Any) -> Any:
    return client.post(f"/v1/rejected/{entry['id']}/resubmit", json=correction, headers=keys.bearer("admin"))


def recorded(engine: Engine) -> list[Event]:
    return [engine.log.read(each).event for each in engine.log.feed()]


def test_a_message_without_an_id_is_recorded_once_however_many_put_it_right(
    client: TestClient, keys: Keys, engine: Engine
) -> None:
    client.post("/v1/track", json={"userId": "1", "properties": {"total": 10}}, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    corrected = {**entry["payload"], "event": "Order Completed"}
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: resubmit(client, keys, entry, payload=corrected).status_code, range(8)))
    assert sorted(said) == [200] + [409] * 7
    (event,) = recorded(engine)
    assert (event.type, event.key) == ("purchase_completed", f"resubmitted/{entry['id']}")


# --- secrets -----------------------------------------------------------------------------------


def test_a_write_key_is_kept_in_no_entry(client: TestClient, keys: Keys) -> None:
    message = {"writeKey": keys.write, "userId": "x", "messageId": "m"}
    assert client.post("/v1/track", json=message).json()["rejected"][0]["code"] == "no_event_name"
    batch = {"writeKey": keys.write, "batch": [message, {**message, "event": "click", "userId": "null"}]}
    client.post("/v1/batch", json=batch)
    found = entries(client, keys)
    assert len(found) == 3
    assert keys.write not in json.dumps(found)
    assert found[-1]["payload"]["userId"] == "x"


@pytest.mark.parametrize(
    "body",
    [
        '{"writeKey": "SECRET", "userId": NaN}',
        '{"userId": "x", "writeKey" : "SECRET',
        "writeKey=SECRET&userId=x",
        '[{"writeKey":"SECRET"}]',
        '{"token": "SECRET", "n": NaN}',
        '{"text": "' + "x" * 40_000 + '", "writeKey": "SECRET"}',
        '{"text": "' + "x" * 65_500 + '", "writeKey": "SECRET"}',
    ],
)
@pytest.mark.parametrize("path", ["/v1/track", "/v1/batch", "/v1/cloudevents"])
def test_no_secret_is_left_in_what_cannot_be_read(body: str, path: str, client: TestClient, keys: Keys) -> None:
    headers = {**keys.bearer("writer"), "Content-Type": "application/cloudevents+json"}
    client.post(path, content=body.replace("SECRET", keys.writer), headers=headers)
    (entry,) = entries(client, keys)
    assert keys.writer[:12] not in json.dumps(entry)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ('{"writeKey":"SECRET","n":NaN}', '{"writeKey":"***","n":NaN}'),
        (json.dumps(json.dumps({"writeKey": "SECRET", "n": 1})), '"{\\"writeKey\\": "***"\\", \\"n\\": 1}"'),
    ],
)
def test_a_body_that_cannot_be_read_keeps_a_foreign_write_key_to_itself(
    body: str, kept: str, client: TestClient, keys: Keys
) -> None:
    client.post("/v1/track", content=body.replace("SECRET", keys.admin), headers=basic(keys.write))
    (entry,) = entries(client, keys)
    assert entry["payload"] == kept


@pytest.mark.parametrize("name", ["writer", "admin", "read"])
def test_a_token_in_a_body_opens_nothing(name: str, client: TestClient, keys: Keys, engine: Engine) -> None:
    message = {"writeKey": getattr(keys, name), "userId": "x", "event": "click", "messageId": "m"}
    assert client.post("/v1/track", json=message).status_code == 401
    assert client.post("/v1/batch", json={"writeKey": getattr(keys, name), "batch": [message]}).status_code == 401
    assert (recorded(engine), entries(client, keys)) == ([], [])
    assert client.post("/v1/track", json=message, headers=basic(keys.write)).json()["accepted"] == 1


# --- what comes back ---------------------------------------------------------------------------


def test_what_the_engine_refused_comes_back_whole(client: TestClient, keys: Keys, clock: Clock) -> None:
    message = {"userId": "undefined", "groupId": "acme", "messageId": "g", "traits": {"name": "Acme"}, "extra": 1}
    client.post("/v1/group", json=message, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    assert (entry["code"], entry["form"]) == ("no_identifier", "event")
    answer = resubmit(client, keys, entry, payload={**entry["payload"], "identifiers": [["user_id", "ada"]]})
    assert answer.json()["receipt"]["status"] == "accepted", answer.text
    clock.now += SECOND
    person = client.get("/v1/people/user_id:ada", headers=keys.bearer("read")).json()
    assert person["groups"].keys() == {"acme"}
    again = client.post("/v1/group", json={**message, "userId": "ada"}, headers=basic(keys.write)).json()
    assert (again["duplicates"], again["conflicts"]) == (1, 0)


def test_what_a_batch_said_for_all_is_said_again(client: TestClient, keys: Keys, engine: Engine) -> None:
    message = {"type": "track", "userId": "1", "messageId": "m", "timestamp": "2026-02-01T00:00:00.000Z"}
    said = {"sentAt": "2026-02-01T00:00:10.000Z", "context": {"ip": "::1"}, "integrations": {"All": False}}
    client.post("/v1/batch", json={**said, "batch": [message]}, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    assert entry["envelope"]["context"] == {"ip": "::1"}
    resubmit(client, keys, entry, payload={**entry["payload"], "event": "click"})
    (event,) = recorded(engine)
    assert (event.occurred_at, event.marks) == (NOW - 10 * SECOND, ("clock_corrected",))
    assert (event.context, event.wire["segment"]["integrations"]) == ({"ip": "::1"}, {"All": False})
    retried = {**said, "sentAt": "2026-02-01T00:00:20.000Z", "batch": [{**message, "event": "click"}]}
    assert client.post("/v1/batch", json=retried, headers=basic(keys.write)).json()["duplicates"] == 1


@pytest.mark.parametrize("vouched", [False, True])
def test_history_over_a_write_key_is_marked_once_unless_an_operator_vouches_for_it(
    vouched: bool, client: TestClient, keys: Keys, engine: Engine
) -> None:
    message = {"userId": "1", "event": "click", "messageId": "m", "historical": True}
    for value in (1, 2):
        client.post("/v1/track", json={**message, "properties": {"n": value}}, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    assert entry["payload"]["marks"] == [CLAIMED_HISTORY]
    resubmit(client, keys, entry, **({"payload": entry["payload"]} if vouched else {}))
    assert [event.marks for event in recorded(engine)] == [(CLAIMED_HISTORY,), () if vouched else (CLAIMED_HISTORY,)]


@pytest.mark.parametrize(("path", "type_"), [("/v1/group", "track"), ("/v1/group", None), ("/v1/group", ...)])
def test_the_call_that_the_path_named_stays(
    path: str, type_: Any, client: TestClient, keys: Keys, engine: Engine
) -> None:
    message = {"userId": "1", "messageId": "m"} | ({} if type_ is ... else {"type": type_})
    client.post(path, json=message, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    assert (entry["code"], entry["payload"]) == ("no_group_id", message)
    resubmit(client, keys, entry, payload={**message, "groupId": "acme"})
    (event,) = recorded(engine)
    assert (event.type, event.object_ref) == ("group", "acme")


def test_a_type_that_is_put_right_is_what_is_meant(client: TestClient, keys: Keys, engine: Engine) -> None:
    client.post("/v1/track", json={"userId": "1", "messageId": "m", "traits": {"a": 1}}, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    resubmit(client, keys, entry, payload={**entry["payload"], "type": "identify"})
    (event,) = recorded(engine)
    assert (event.type, event.properties) == ("identify", {"a": 1})


def test_a_cloudevent_goes_to_the_person_that_it_names(tmp_path: Path) -> None:
    definitions = tmp_path / "threadline.yaml"
    definitions.write_text("identifiers:\n  crm: {priority: 5, limit: 2}\n")
    engine = open_engine("memory:", Settings(), definitions=definitions)
    keys = keys_of(engine)
    message = {"specversion": "1.0", "id": "o-1", "source": "/shop", "type": "click", "subject": "crm:77"}
    headers = {**keys.bearer("write"), "Content-Type": "application/cloudevents+json"}
    with client_of(engine) as client:
        client.post("/v1/cloudevents", json={**message, "time": "soon"}, headers=headers)
        (entry,) = entries(client, keys)
        resubmit(client, keys, entry, payload=message)
        assert client.post("/v1/cloudevents", json=message, headers=headers).json()["duplicates"] == 1
    (event,) = recorded(engine)
    assert event.identifiers == (Identifier("crm", "77"),)
    engine.close()


# --- what became of a message ------------------------------------------------------------------


@pytest.mark.parametrize("source", ["/shop", "https://shop.example/" + "a" * 400])
def test_a_cloudevent_is_found_by_its_pair_whether_it_was_taken_or_not(
    source: str, client: TestClient, keys: Keys
) -> None:
    event = {"specversion": "1.0", "id": "o-9", "source": source, "type": "click", "subject": "1"}
    batch = [event, {**event, "id": "o-10", "time": "soon"}, {**event, "id": "o-11", "subject": "undefined"}]
    headers = {**basic(keys.write), "Content-Type": "application/cloudevents-batch+json"}
    told = client.post("/v1/cloudevents", content=json.dumps(batch), headers=headers).json()["rejected"]
    for id, outcome in (("o-9", "accepted"), ("o-10", "rejected"), ("o-11", "rejected")):
        path = "/v1/messages/" + quote(f"{source} {id}", safe="")
        said = client.get(path, headers=keys.bearer("read"))
        assert said.status_code == 200, said.text
        assert said.json()["outcome"] == outcome
    for each in told:
        path = "/v1/messages/" + quote(each["messageId"], safe="")
        assert client.get(path, headers=keys.bearer("read")).json()["outcome"] == "rejected"


def test_a_message_with_a_number_for_an_id_is_found(client: TestClient, keys: Keys) -> None:
    for message in ({"event": "click", "messageId": 1}, {"messageId": 2}, {"messageId": 3.0}):
        client.post("/v1/track", json={"userId": "1", **message}, headers=basic(keys.write))
    found = [client.get(f"/v1/messages/{id}", headers=keys.bearer("read")).json()["outcome"] for id in (1, 2, 3)]
    assert found == ["accepted", "rejected", "rejected"]


def test_what_is_not_found_is_not_said_to_be_unrecorded(client: TestClient, keys: Keys) -> None:
    said = client.get("/v1/messages/m", headers=keys.bearer("read"))
    assert said.status_code == 404
    assert "not recorded" not in said.text


# --- the same again ----------------------------------------------------------------------------


def test_a_message_without_an_id_is_another_one_each_time(client: TestClient, keys: Keys, engine: Engine) -> None:
    message = {"userId": "many", "properties": {"plan": "pro"}}
    for _ in range(3):
        client.post("/v1/track", json=message, headers=basic(keys.write))
    client.post("/v1/batch", json={"batch": [{"type": "track", **message}] * 2}, headers=basic(keys.write))
    found = entries(client, keys)
    assert len(found) == 5
    for entry in found:
        resubmit(client, keys, entry, payload={**entry["payload"], "event": "click"})
    assert len(recorded(engine)) == 5


def test_what_was_dismissed_and_comes_again_is_open(client: TestClient, keys: Keys, clock: Clock) -> None:
    for message in ({"userId": "1"}, {"userId": "1", "messageId": "m"}):
        for _ in range(2):
            client.post("/v1/track", json=message, headers=basic(keys.write))
            clock.now += SECOND
            (entry,) = entries(client, keys, status="open")
            assert entry["received_at"] == format_time(clock.now - SECOND)
            client.post(f"/v1/rejected/{entry['id']}/dismiss", json={}, headers=keys.bearer("admin"))
            assert entries(client, keys, status="open") == []
    assert [entry["payload"].get("messageId") for entry in entries(client, keys)] == ["m", None, None]


def test_a_retry_of_what_was_put_right_opens_nothing(client: TestClient, keys: Keys, engine: Engine) -> None:
    message = {"userId": "1", "messageId": "m"}
    client.post("/v1/track", json=message, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    resubmit(client, keys, entry, payload={**message, "event": "click"})
    client.post("/v1/track", json=message, headers=basic(keys.write))
    assert [each["status"] for each in entries(client, keys)] == ["resubmitted"]


def test_a_flood_of_the_same_text_ends_in_one_entry(client: TestClient, keys: Keys) -> None:
    batch = {"batch": [{"type": "track", "userId": "1"}] * (REPEATS_AT_ONCE_MAX + 50)}
    client.post("/v1/batch", json=batch, headers=basic(keys.write))
    found = entries(client, keys, limit="1000") + entries(client, keys, limit="1000", cursor=page_end(client, keys))
    assert len(found) == len({each["id"] for each in found}) == REPEATS_AT_ONCE_MAX + 1


def page_end(client: TestClient, keys: Keys) -> str:
    return str(client.get("/v1/rejected", params={"limit": 1000}, headers=keys.bearer("read")).json()["next"])
