"""Whatever is sent, the answer over HTTP is no 500, and a bad message never loses its neighbours."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.surfaces.conftest import Clock, client_of
from tests.surfaces.operations_stage import PROBLEM, record
from threadline.app import open_engine
from threadline.settings import Settings
from threadline.surfaces.operation_calls import shown

ODD_TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["\0", "9" * 400, "-1", "1e999", "nan", "null", "2026-13-01", "a" * 5_000, "user_id:", ":", "::", "%"]
    ),
)
OPTIONAL = ("event", "traits", "properties", "context", "timestamp", "messageId", "groupId", "previousId")
ODD_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), ODD_TEXT, st.sampled_from([2**63, 2**64, -(2**63) - 1])
    ),
    lambda inside: st.one_of(st.lists(inside, max_size=4), st.dictionaries(ODD_TEXT, inside, max_size=4)),
    max_leaves=12,
)


class World:
    """One engine for all examples: what earlier examples have written is part of the fuzz."""

    def __init__(self) -> None:
        self.engine = open_engine("memory:", Settings(), Clock())
        self.client = client_of(self.engine)
        _, self.token = self.engine.credentials.create("default", "token", "fuzz", ["admin"])
        record(self.engine)
        self.operations = list(shown(self.engine.catalogue.operations, "http").values())
        self.client.__enter__()


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@given(data=st.data())
def test_no_parameter_is_a_fault_of_ours(world: World, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(world.operations), label="operation")
    fields = list(operation.params.__struct_fields__)
    values = data.draw(st.dictionaries(st.sampled_from([*fields, "other"]), ODD_JSON, max_size=4), label="values")
    path = operation.path
    for name in fields:
        known = st.sampled_from(["user_id:1", "0" * 32, world.token])
        value = data.draw(st.one_of(ODD_TEXT, known), label=name)
        path = path.replace(f"{{{name}}}", quote(value, safe="") or "x")
    arguments: dict[str, Any] = {}
    if operation.method == "POST":
        arguments["content"] = json.dumps({k: v for k, v in values.items() if f"{{{k}}}" not in operation.path})
    else:
        arguments["params"] = {name: str(value) for name, value in values.items()}
    answer = world.client.request(
        operation.method, path, headers={"Authorization": f"Bearer {world.token}"}, **arguments
    )
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == PROBLEM


@given(
    path=st.binary(max_size=60), query=st.binary(max_size=60), method=st.sampled_from(["GET", "POST", "OPTIONS", "X"])
)
def test_no_address_is_a_fault_of_ours(world: World, path: bytes, query: bytes, method: str) -> None:
    raw = "".join(f"%{byte:02X}" if data_byte_is_odd(byte) else chr(byte) for byte in path)
    asked = "".join(f"%{byte:02X}" if data_byte_is_odd(byte) else chr(byte) for byte in query)
    answer = world.client.request(
        method, f"/v1/people/{raw}?{asked}", headers={"Authorization": f"Bearer {world.token}"}
    )
    assert answer.status_code < 500, answer.text


def data_byte_is_odd(byte: int) -> bool:
    return not (48 <= byte <= 57 or 97 <= byte <= 122 or byte in b"/:=&%+")


@given(body=st.one_of(st.binary(max_size=200), ODD_JSON.map(lambda value: json.dumps(value).encode())))
def test_no_body_is_a_fault_of_ours(world: World, body: bytes) -> None:
    for path in ("/v1/batch", "/v1/track", "/v1/cloudevents", "/v1/events"):
        for content_type in ("application/json", "application/cloudevents+json", "application/cloudevents-batch+json"):
            headers = {"Authorization": f"Bearer {world.token}", "Content-Type": content_type, "ce-id": "1"}
            answer = world.client.post(path, content=body, headers=headers)
            assert answer.status_code < 500, (path, answer.text)


@given(
    batch=st.lists(
        st.one_of(
            ODD_JSON,
            st.fixed_dictionaries(
                {"type": st.sampled_from(["track", "identify", "page", "group", "alias"]), "userId": ODD_JSON},
                optional=dict.fromkeys(
                    ("event", "traits", "properties", "context", "timestamp", "messageId", "groupId", "previousId"),
                    ODD_JSON,
                ),
            ),
        ),
        max_size=6,
    )
)
def test_a_bad_message_never_loses_its_neighbours(world: World, batch: list[Any]) -> None:
    headers = {"Authorization": f"Bearer {world.token}"}
    good = {"type": "track", "event": "click", "userId": "neighbour"}
    body = {"batch": [good, *batch, good]}
    try:
        text = json.dumps(body)
    except ValueError:
        return
    answer = world.client.post("/v1/batch", content=text, headers=headers)
    assert answer.status_code == 200, answer.text
    outcome = answer.json()
    refused = {each["index"] for each in outcome["rejected"]}
    assert 0 not in refused
    assert len(batch) + 1 not in refused
    assert outcome["accepted"] + outcome["duplicates"] + outcome["conflicts"] + len(refused) == len(batch) + 2
