"""CloudEvents over HTTP: as large as the page promises, in every mode and form of data, and in JSON only."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys
from threadline.engine.engine import Engine
from threadline.kernel.limits import CLOUDEVENT_BYTES_MAX

ATTRIBUTES = {"specversion": "1.0", "id": "large", "source": "/shop", "type": "order.done", "subject": "ada"}


def post(client: TestClient, keys: Keys, body: bytes, content_type: str, **headers: str) -> Any:
    told = {"authorization": f"Bearer {keys.write}", "content-type": content_type, **headers}
    return client.post("/v1/cloudevents", content=body, headers=told)


def padded(build: Any, size: int) -> bytes:
    """JSON of exactly so many bytes; ``build`` makes its value of a text."""
    empty = len(json.dumps(build("")))
    return json.dumps(build("y" * (size - empty))).encode()


def structured(size: int) -> bytes:
    return padded(lambda text: {**ATTRIBUTES, "data": {"x": text}}, size)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", padded(lambda text: {"x": text}, CLOUDEVENT_BYTES_MAX)),
        ("text/plain", b"y" * CLOUDEVENT_BYTES_MAX),
        ("application/octet-stream", b"\1" * CLOUDEVENT_BYTES_MAX),
    ],
)
def test_the_largest_binary_event_is_taken(
    content_type: str, body: bytes, client: TestClient, keys: Keys, engine: Engine
) -> None:
    headers = {f"ce-{name}": value for name, value in ATTRIBUTES.items()}
    assert post(client, keys, body, content_type, **headers).json()["accepted"] == 1
    assert engine.log.of_key("default", "shop", "/shop large") is not None
    [refused] = post(client, keys, body + b" ", content_type, **{**headers, "ce-id": "larger"}).json()["rejected"]
    assert refused["code"] == "too_large"
    assert str(CLOUDEVENT_BYTES_MAX) in refused["message"]


def test_the_largest_structured_event_is_taken(client: TestClient, keys: Keys) -> None:
    body = structured(CLOUDEVENT_BYTES_MAX)
    assert len(body) == CLOUDEVENT_BYTES_MAX
    assert post(client, keys, body, "application/cloudevents+json").json()["accepted"] == 1
    [refused] = post(client, keys, body + b" ", "application/cloudevents+json").json()["rejected"]
    assert refused["code"] == "too_large"
    assert str(CLOUDEVENT_BYTES_MAX) in refused["message"]


def test_the_largest_events_are_taken_in_a_batch(client: TestClient, keys: Keys) -> None:
    events = [structured(CLOUDEVENT_BYTES_MAX).replace(b'"large"', b'"%05d"' % number) for number in range(50)]
    answer = post(client, keys, b"[" + b",".join(events) + b"]", "application/cloudevents-batch+json").json()
    assert (answer["accepted"], answer["rejected"]) == (50, [])


@pytest.mark.parametrize("form", ["+avro", "-batch+avro", "+protobuf", "-batch+xml", "-bundle+json"])
def test_a_format_that_is_not_read_here_is_told_as_that(
    form: str, client: TestClient, keys: Keys, engine: Engine
) -> None:
    answer = post(client, keys, b"\0\1", f"application/cloudevents{form}; charset=utf-8")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_format")
    assert "application/cloudevents+json" in answer.json()["hint"]
    described = client.get("/openapi.json").json()
    answers = described["paths"]["/v1/cloudevents"]["post"]["responses"]
    assert answers["415"]["$ref"] == "#/components/responses/Problem415"
    assert "format" in described["components"]["responses"]["Problem415"]["description"]
    stranger = client.post("/v1/cloudevents", content=b"", headers={"content-type": f"application/cloudevents{form}"})
    assert stranger.status_code == 401


@pytest.mark.parametrize("form", ["", "+json", "+JSON; charset=utf-8"])
def test_json_is_read_under_each_of_its_names(form: str, client: TestClient, keys: Keys) -> None:
    event = json.dumps(ATTRIBUTES).encode()
    assert post(client, keys, event, f"application/cloudevents{form}").json()["accepted"] == 1
    assert post(client, keys, b"[" + event + b"]", f"application/cloudevents-batch{form}").json()["duplicates"] == 1


def test_a_byte_order_mark_before_json_is_passed_over_and_in_data_is_kept(
    client: TestClient, keys: Keys, engine: Engine
) -> None:
    event, headers = json.dumps(ATTRIBUTES).encode(), {f"ce-{name}": value for name, value in ATTRIBUTES.items()}
    for content_type, body in (
        ("application/cloudevents+json", event),
        ("application/cloudevents", event),
        ("application/cloudevents-batch+json", b"[" + event + b"]"),
    ):
        told = post(client, keys, BOM_UTF8 + body, content_type).json()
        assert told["accepted"] + told["duplicates"] == 1, content_type
    for id, content_type in (("json", "application/json"), ("", ""), ("text", "text/plain")):
        sent = {**headers, "ce-id": f"binary {id}"}
        assert post(client, keys, BOM_UTF8 + b"7", content_type, **sent).json()["accepted"] == 1, content_type
    kept = engine.log.of_key("default", "shop", "/shop binary text")
    assert kept is not None
    assert kept.event.properties == {"data": "\ufeff7"}


def test_an_attribute_that_came_twice_is_not_chosen_from(client: TestClient, keys: Keys) -> None:
    sent = [("authorization", f"Bearer {keys.write}"), ("content-type", "application/json")]
    sent += [(f"ce-{name}", value) for name, value in ATTRIBUTES.items()]
    told = client.post("/v1/cloudevents", content=b"{}", headers=[*sent, ("ce-id", "other")]).json()
    assert [(each["code"], each["message"]) for each in told["rejected"]] == [
        ("invalid_attribute", "`ce-id` came more than once, with different values")
    ]
    again = client.post("/v1/cloudevents", content=b"{}", headers=[*sent, ("ce-id", ATTRIBUTES["id"])]).json()
    assert again["accepted"] == 1, "a proxy may repeat what there is"
