"""Erasure over HTTP: what senders are answered meanwhile, progress as a stream, and the certificate by the script."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys
from tests.surfaces.segment_stage import basic
from threadline.engine.engine import Engine
from threadline.kernel.errors import NotFound


def batch(client: TestClient, keys: Keys, *people: str, key: str) -> Any:
    messages = [{"type": "track", "userId": who, "event": "seen", "messageId": f"{who}-{key}"} for who in people]
    return client.post("/v1/batch", json={"batch": messages}, headers=basic(keys.write))


def test_a_batch_that_names_somebody_who_is_being_erased_is_sent_again_later(
    client: TestClient, engine: Engine, keys: Keys
) -> None:
    assert batch(client, keys, "ada", "bob", key="1").status_code == 200
    begun = engine.erasures.begin("default", "user_id:ada")
    answer = batch(client, keys, "bob", "ada", "carol", key="2")
    assert (answer.status_code, answer.json()["code"]) == (503, "being_erased")
    assert int(answer.headers["retry-after"]) <= 10
    assert engine.reader.person("default", "user_id:bob").position == 2
    assert engine.reader.person("default", "user_id:carol").position == 1
    assert engine.rejected.page("default") == []
    asked = client.get("/v1/people/ada", headers=keys.bearer("read"))
    assert asked.status_code == 404
    engine.erasures.run("default", begun.id)
    again = batch(client, keys, "bob", "ada", "carol", key="2").json()
    assert (again["accepted"], again["duplicates"]) == (1, 2)
    # What was erased is a duplicate, and brings nobody back.
    assert batch(client, keys, "ada", key="1").json()["duplicates"] == 1
    assert engine.reader.person("default", "user_id:ada").position == 1


def test_the_preview_sums_up_by_the_files_of_an_export_and_the_erasure_says_the_same(
    client: TestClient, engine: Engine, keys: Keys
) -> None:
    batch(client, keys, "ada", key="1")
    admin, path = keys.bearer("admin"), "/v1/people/ada/erase"
    given = {"type": "preference", "key": "size", "value": 41}
    assert client.post("/v1/people/ada/memory", json=given, headers=admin).status_code == 200
    assert client.post("/v1/suppression", json={"address": "ada@example.com"}, headers=admin).status_code == 200
    preview = client.post(path, json={"dry_run": True}, headers=admin).json()
    files = {file.name for file in engine.catalogue.person_files}
    names = list(preview["summary"])
    assert (names[0], names[-1]) == ("events", "other")
    assert preview["summary"].keys() - {"other"} <= files
    assert preview["summary"]["events"] == preview["removed"]["events"] == 2
    assert sum(preview["summary"].values()) == sum(preview["removed"].values())
    assert client.post(path, json={}, headers=admin).json()["summary"] == preview["summary"]


def test_erasing_needs_the_scope_admin_and_is_done_once_for_a_request(client: TestClient, keys: Keys) -> None:
    batch(client, keys, "ada", key="1")
    path = "/v1/people/ada/erase"
    assert client.post(path, json={}, headers=keys.bearer("writer")).status_code == 403
    assert client.post(path, json={}, headers=keys.bearer("stranger")).status_code == 404
    preview = client.post(path, json={"dry_run": True}, headers=keys.bearer("admin")).json()
    assert (preview["done"], preview["erasure"], preview["removed"]["events"]) == (False, "", 1)
    headers = {**keys.bearer("admin"), "Idempotency-Key": "r1"}
    first, second = (client.post(path, json={}, headers=headers).json() for _ in range(2))
    assert first == second, second
    assert first["removed"] == preview["removed"]
    shown = client.get(f"/v1/erasures/{first['erasure']}", headers=keys.bearer("admin")).json()
    assert shown["certificate"]["before"] == preview["removed"]
    assert client.get(f"/v1/erasures/{first['erasure']}", headers=keys.bearer("stranger")).status_code == 404
    assert client.get("/v1/erasures", headers=keys.bearer("read")).status_code == 403
    streamed = client.get(f"/v1/erasures/{first['erasure']}/events", headers=keys.bearer("admin")).text
    assert json.loads(streamed.split("data: ")[-1].split("\n")[0])["state"] == "done"


def test_a_person_of_another_workspace_is_nobody(engine: Engine, client: TestClient, keys: Keys) -> None:
    batch(client, keys, "ada", key="1")
    id = engine.reader.person("default", "user_id:ada").id
    with pytest.raises(NotFound):
        engine.erasures.begin("other", id)
    engine.erasures.begin("default", id)
    with pytest.raises(NotFound):
        engine.erasures.begin("other", id)
