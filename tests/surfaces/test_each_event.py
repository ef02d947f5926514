"""A bad event has an outcome of its own and stops no neighbour: over HTTP, from Python, on the command line."""

from __future__ import annotations

import itertools
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.surfaces.conftest import NOW, Keys, client_of
from threadline.app import open_engine
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.settings import Settings
from threadline.surfaces.http.addresses.operations import read_object
from threadline.surfaces.operation_calls import call as call_operation
from threadline.surfaces.python.embedded import Threadline

pytest_plugins = ["tests.surfaces.cli_stage"]

GOOD = {"type": "click", "identifiers": {"user_id": "1"}}
MISTAKES: dict[str, tuple[Any, str]] = {
    "no event": (5, "invalid_value"),
    "a list": ([], "invalid_value"),
    "no type": ({"identifiers": {"user_id": "1"}, "key": "b"}, "invalid_value"),
    "a number as type": ({**GOOD, "type": 5, "key": "b"}, "invalid_value"),
    "an empty type": ({**GOOD, "type": "", "key": "b"}, "invalid_type"),
    "a field that is none": ({**GOOD, "tpye": "x", "key": "b"}, "invalid_value"),
    "no identifiers": ({"type": "click", "key": "b"}, "invalid_value"),
    "a number as identifier": ({**GOOD, "identifiers": {"user_id": 1}, "key": "b"}, "invalid_value"),
    "a list of properties": ({**GOOD, "properties": [1], "key": "b"}, "invalid_value"),
    "no time": ({**GOOD, "occurred_at": "yesterday", "key": "b"}, "invalid_time"),
    "a number beyond 64 bits": ({**GOOD, "properties": {"n": 2**70}, "key": "b"}, "number_out_of_range"),
}
IN_PYTHON: dict[str, tuple[Any, str]] = {
    "no event": ("click", "invalid_value"),
    "a time without a zone": ({**GOOD, "occurred_at": datetime(2026, 1, 1)}, "invalid_time"),  # noqa: DTZ001 — on purpose
    "a time that is none": ({**GOOD, "occurred_at": 1.5}, "invalid_time"),
    "NaN": ({**GOOD, "properties": {"n": float("nan")}}, "number_out_of_range"),
    "NaN of another source": ({**GOOD, "source": "crm", "context": {"n": [float("nan")]}}, "number_out_of_range"),
    "infinity in an event": (
        Event(
            type="t",
            identifiers=(Identifier("user_id", "1"),),
            occurred_at=NOW,
            key="i",
            source="crm",
            source_type="external",
            properties={"n": float("inf")},
        ),
        "number_out_of_range",
    ),
    "a value without a form": ({**GOOD, "properties": {"n": object()}}, "invalid_value"),
}
UNREADABLE = {
    "NaN": (b'{"type": "t", "identifiers": {"user_id": "1"}, "key": "b", "properties": {"n": NaN}}', "invalid_json"),
    "1e400": (
        b'{"type": "t", "identifiers": {"user_id": "1"}, "key": "b", "properties": {"n": 1e400}}',
        "number_out_of_range",
    ),
    "too deep": (
        b'{"type": "t", "identifiers": {"user_id": "1"}, "key": "b", "properties": {"n": '
        + b"[" * 200
        + b"]" * 200
        + b"}}",
        "too_deep",
    ),
    "no JSON": (b'{"type": }', "invalid_json"),
}


Outcome = tuple[str, str]
ACCEPTED = ("accepted", "")
HTTP = {name: (json.dumps(event).encode(), code) for name, (event, code) in MISTAKES.items()} | {
    "no key": (json.dumps(GOOD).encode(), "invalid_key"),
    **UNREADABLE,
}


def outcomes(receipts: list[dict[str, Any]]) -> list[Outcome]:
    return [(receipt["status"], receipt.get("code", "")) for receipt in receipts]


def array_of(bad: bytes, name: str) -> bytes:
    """A bad event between two good ones."""
    before, after = (json.dumps({**GOOD, "key": f"{name}, {where}"}).encode() for where in ("before", "after"))
    return b"[" + before + b", " + bad + b", " + after + b"]"


def test_a_bad_event_over_http_has_its_own_outcome(client: TestClient, keys: Keys) -> None:
    found: dict[str, list[Outcome]] = {}
    for name, (bad, _) in HTTP.items():
        body = b'{"events": ' + array_of(bad, name) + b"}"
        answer = client.post("/v1/events", content=body, headers=keys.bearer("writer"))
        assert (answer.status_code, answer.json()["accepted"], answer.json()["rejected"]) == (200, 2, 1)
        found[name] = outcomes(answer.json()["receipts"])
    assert found == {name: [ACCEPTED, ("rejected", code), ACCEPTED] for name, (_, code) in HTTP.items()}
    entries = client.get("/v1/rejected", headers=keys.bearer("admin")).json()["entries"]
    assert sorted(entry["code"] for entry in entries) == sorted(code for _, code in HTTP.values())


def test_a_bad_event_from_python_has_its_own_outcome(engine: Engine) -> None:
    threadline = Threadline(engine)
    mistakes = MISTAKES | IN_PYTHON
    found = {
        name: outcomes(msgspec.to_builtins(threadline.record([GOOD, bad, GOOD]))) for name, (bad, _) in mistakes.items()
    }
    assert found == {name: [ACCEPTED, ("rejected", code), ACCEPTED] for name, (_, code) in mistakes.items()}
    entries = threadline.rejected.list().entries
    assert sorted(entry.code for entry in entries) == sorted(code for _, code in mistakes.values())


def test_a_number_that_is_none_is_kept_as_it_was(engine: Engine) -> None:
    threadline = Threadline(engine)
    for name in ("NaN", "NaN of another source", "infinity in an event"):
        threadline.record([IN_PYTHON[name][0]])
        (entry, *_) = threadline.rejected.list().entries
        assert entry.form == "text"
        assert {"nan", "inf"} & set(re.findall(r"\w+", entry.payload))


def test_a_bad_event_on_the_command_line_has_its_own_outcome(store: Path, call: Any) -> None:
    bad = b", ".join(raw for raw, _ in UNREADABLE.values())
    answer = call("record", "--json", "--events", array_of(bad, "it").decode())
    codes = [("rejected", code) for _, code in UNREADABLE.values()]
    assert outcomes(json.loads(answer.out)["receipts"]) == [ACCEPTED, *codes, ACCEPTED]


def test_a_mistake_names_the_event_and_the_field(engine: Engine) -> None:
    _, receipt = Threadline(engine).record([GOOD, {**GOOD, "properties": {"a": 1}, "tpye": 1}])
    assert receipt.message == "events[1]: unknown field 'tpye'; did you mean 'type'?"
    (receipt,) = Threadline(engine).record([{**GOOD, "type": 5}])
    assert receipt.message == "events[0].type: expected `str`, got `int`"


def test_a_corrected_payload_of_a_bad_event_is_recorded(client: TestClient, keys: Keys) -> None:
    event = {**GOOD, "type": 5, "key": "b"}
    client.post("/v1/events", json={"events": [event]}, headers=keys.bearer("writer"))
    (entry,) = client.get("/v1/rejected", headers=keys.bearer("admin")).json()["entries"]
    assert (entry["form"], entry["payload"]) == ("native", event)
    corrected = {"payload": {**event, "type": "click"}}
    answer = client.post(f"/v1/rejected/{entry['id']}/resubmit", json=corrected, headers=keys.bearer("admin")).json()
    assert (answer["receipt"]["status"], answer["entry"]["status"]) == ("accepted", "resubmitted")


def test_a_bad_event_counts_under_the_rate_limit(engine: Engine, keys: Keys) -> None:
    settings = Settings(access_log=False, source_events_per_second=1, source_burst_events=2)
    with client_of(engine, settings) as client:
        sent = [
            client.post("/v1/events", json={"events": [{"type": n}] * 2}, headers=keys.bearer("writer")).status_code
            for n in range(2)
        ]
    assert sent == [200, 429]


_engine = open_engine("memory:", Settings())
_context = Context(_engine, "default", NOW, "shop", over_wire=True)
_keys = (f"key-{number}" for number in itertools.count())


@given(st.lists(st.sampled_from(["good", *HTTP]), max_size=8))
def test_any_mix_of_good_and_bad_events_records_the_good_ones(kinds: list[str]) -> None:
    events = [json.dumps({**GOOD, "key": next(_keys)}).encode() if kind == "good" else HTTP[kind][0] for kind in kinds]
    values = read_object(b'{"events": [' + b",".join(events) + b"]}", "events")
    result = call_operation(_engine.catalogue.operation("record"), _context, values, strict=True)
    assert outcomes(msgspec.to_builtins(result.receipts)) == [
        ACCEPTED if kind == "good" else ("rejected", HTTP[kind][1]) for kind in kinds
    ]
