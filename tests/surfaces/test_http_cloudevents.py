"""CloudEvents over HTTP: as large as the page promises, in every mode and form of data."""

from __future__ import annotations

import json
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
    assert engine.event_of_key("default", "shop", "/shop large") is not None
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
