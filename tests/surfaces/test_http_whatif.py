"""A what-if over HTTP: started, followed by server-sent events, cancelled, taken up again, and its result read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import threadline
from tests.surfaces.test_http_server import Process

PEOPLE = 500
TOKEN = {"Authorization": "Bearer tk-alone"}
RULE = {
    "conditions": {"field": "event.properties.total", "greater_than": 80},
    "actions": [{"store_decision": {"result": "approve"}}],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    store = tmp_path / "threadline.db"
    with threadline.open(store) as shop:
        events = [
            {"type": "paid", "key": f"{n}", "identifiers": {"user_id": f"u{n}"}, "properties": {"total": n % 100}}
            for n in range(PEOPLE)
        ]
        shop.record(events)
        shop.rule_sets.write(name="paid", events=["paid"], rules=["big"])
        shop.rules.write(id="big", rule=RULE)
        shop.rules.activate(id="big", version=1, untested=True)
    made = Process(store, {"THREADLINE_TOKENS": "tk-alone", "THREADLINE_ACTIVATION_WHAT_IF": "true"})
    yield made
    made.process.kill()
    made.process.communicate()


def ask(server: Process, method: str, path: str, body: Any = None) -> Any:
    answer = httpx.request(method, server.url + path, json=body, headers=TOKEN, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def followed(server: Process, id: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream, up to its end."""
    found = []
    with httpx.stream("GET", f"{server.url}/v1/whatif/{id}/events", headers=TOKEN, timeout=60) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in stream.iter_lines():
            kind, _, value = line.partition(": ")
            if kind == "event":
                name = value
            elif kind == "data":
                found.append((name, json.loads(value)))
    return found


def test_it_is_started_followed_and_read(server: Process) -> None:
    lower = {**RULE, "conditions": {"field": "event.properties.total", "greater_than": 70}}
    assert ask(server, "POST", "/v1/rules/big/versions", {"rule": lower})["version"] == 2
    begun = ask(server, "POST", "/v1/whatif", {"rule": "big", "version": 2, "save": True})
    events = followed(server, begun["id"])
    assert [name for name, _ in events[:-1]] == ["progress"] * (len(events) - 1)
    name, last = events[-1]
    assert (name, last["state"], last["people"]) == ("ended", "done", PEOPLE)
    found = ask(server, "GET", f"/v1/whatif/{begun['id']}")
    # 71 to 80 of each hundred, once each.
    assert (found["changed"], found["people_changed"], found["errors"]) == (50, 50, 0)
    (cell,) = [each for each in found["matrix"] if each["changed"]]
    assert len(set(cell.pop("people"))) == 5
    assert cell == {"old": "NoMatch", "new": "Approved", "same": 0, "changed": 50}
    assert "-  greater_than: 80" in found["diff"]
    assert [each["id"] for each in ask(server, "GET", "/v1/whatif")["saved"]] == [begun["id"]]
    # The setting asks for a what-if before an activation, and there is one now.
    active = ask(server, "POST", "/v1/rules/big/activate", {"version": 2, "untested": True})
    assert active["active"] == 2


def test_without_a_saved_what_if_the_gate_is_shut(server: Process) -> None:
    ask(server, "POST", "/v1/rules/big/versions", {"rule": {**RULE, "priority": 7}})
    body = {"version": 2, "untested": True}
    answer = httpx.post(f"{server.url}/v1/rules/big/activate", json=body, headers=TOKEN)
    assert answer.status_code == 409
    assert "no what-if of it was saved" in answer.json()["detail"]


def test_it_is_cancelled_and_goes_on(server: Process) -> None:
    definitions = json.dumps({"rules": {"big": {**RULE, "version": 9, "priority": 3}}})
    begun = ask(server, "POST", "/v1/whatif", {"definitions": definitions})
    stopped = ask(server, "POST", f"/v1/whatif/{begun['id']}/cancel", {})
    if stopped["state"] == "cancelled":
        assert followed(server, begun["id"])[-1][1]["state"] == "cancelled"
        ask(server, "POST", f"/v1/whatif/{begun['id']}/resume", {})
    assert followed(server, begun["id"])[-1][1]["people"] == PEOPLE
    assert ask(server, "GET", f"/v1/whatif/{begun['id']}")["changed"] == 0


def test_a_stream_needs_a_token_and_an_id_of_its_workspace(server: Process) -> None:
    assert httpx.get(f"{server.url}/v1/whatif/none/events").status_code == 401
    assert httpx.get(f"{server.url}/v1/whatif/none/events", headers=TOKEN).status_code == 404
