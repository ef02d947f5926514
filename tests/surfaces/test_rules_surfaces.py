"""Rules over HTTP and from the command line: the same answers, the scopes they need, problems with their place."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests import forked
from tests.surfaces.conftest import Keys, client_of
from threadline.app import open as opened
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier

RULE = {
    "conditions": {"field": "event.properties.score", "greater_than": 80},
    "actions": [{"store_decision": {"result": "reject"}}],
}
APPLIED = {"type": "applied", "identifiers": {"user_id": "ada"}, "key": "1", "properties": {"score": 91}}


def test_a_rule_lives_its_life_over_http(engine: Engine) -> None:
    tokens = {
        scope: {"Authorization": f"Bearer {engine.credentials.create('default', 'token', scope, [scope])[1]}"}
        for scope in ("read", "write", "admin")
    }
    with client_of(engine) as client:
        body = {"rule": RULE}
        assert client.post("/v1/rules/score/versions", json=body, headers=tokens["write"]).status_code == 403
        answer = client.post("/v1/rules/score/versions", json=body, headers=tokens["admin"])
        assert (answer.status_code, answer.json()["state"]) == (200, "draft")
        wrong = client.post("/v1/rules/score/versions", json={"rule": {**RULE, "prority": 1}}, headers=tokens["admin"])
        assert wrong.status_code == 400
        assert "rule.prority: unknown key 'prority'; did you mean 'priority'?" in wrong.text
        refused = client.post("/v1/rules/score/activate", json={"version": 1}, headers=tokens["admin"])
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert client.post("/v1/rules/score/tested", json={"version": 1}, headers=tokens["admin"]).status_code == 200
        assert client.post("/v1/rules/score/activate", json={"version": 1}, headers=tokens["admin"]).status_code == 200
        apps = {"events": ["applied"], "rules": ["score"]}
        assert client.post("/v1/rule-sets/apps", json=apps, headers=tokens["admin"]).json()["changed"] is True
        tried = client.post("/v1/decisions/evaluate", json={"event": APPLIED}, headers=tokens["write"]).json()
        assert [each["status"] for each in tried["decisions"]] == ["Rejected"]
        assert client.post("/v1/events", json={"events": [APPLIED]}, headers=tokens["write"]).json()["accepted"] == 1
        (made,) = client.get("/v1/decisions?rule=score", headers=tokens["read"]).json()["decisions"]
        assert made["hash"] == tried["decisions"][0]["hash"]
        audit = client.get(f"/v1/audit/{made['decision_id']}", headers=tokens["read"]).json()
        assert (audit["problems"], audit["in_force"], audit["event"]["type"]) == ([], True, "applied")
        why = client.get("/v1/people/user_id:ada/rules/score", headers=tokens["read"]).json()
        assert why["matched"] is True
        log = client.get("/v1/rules/score/log", headers=tokens["read"]).json()["log"]
        assert [(each["to"], each["by"]) for each in log] == [(to, "admin") for to in ("draft", "tested", "active")]
        assert client.delete("/v1/rule-sets/apps", headers=tokens["admin"]).json()["changed"] is True


def test_who_may_not_write_a_decision_model_may_not_try_one_of_their_own(engine: Engine, keys: Keys) -> None:
    nodes = [{"id": "in", "type": "inputNode", "name": "in"}, {"id": "out", "type": "outputNode", "name": "out"}]
    model = {"nodes": nodes, "edges": [{"id": "a", "sourceId": "in", "targetId": "out"}]}
    with client_of(engine) as client:
        for name, content, status in (
            ("writer", {"model": model}, 403),
            ("admin", {"model": model}, 200),
            ("writer", {"conditions": RULE["conditions"]}, 200),
        ):
            body = {"event": APPLIED, "content": content}
            answer = client.post("/v1/decisions/evaluate", json=body, headers=keys.bearer(name))
            assert (answer.status_code, "scope 'admin'" in answer.text) == (status, status == 403), answer.text


def threadline(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [forked.threadline(), *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    (tmp_path / "rule.json").write_text(json.dumps(RULE))
    return tmp_path


def test_the_same_from_the_command_line(folder: Path) -> None:
    steps = [
        ("rules", "write", "score", "--rule", "@rule.json"),
        ("rules", "activate", "score", "--version", "1", "--untested"),
        ("rule-sets", "write", "apps", "--events", "applied", "--rules", "score"),
        ("record", "--events", json.dumps([APPLIED])),
    ]
    for step in steps:
        code, told = threadline(folder, *step)
        assert code == 0, told
    code, told = threadline(folder, "decisions", "list", "--rule", "score", "--json")
    assert (code, json.loads(told)["decisions"][0]["status"]) == (0, "Rejected")
    code, told = threadline(folder, "verify")
    assert (code, "0 breaches" in " ".join(told.split())) == (0, True)


def test_verify_tells_of_a_declared_rule_that_changed_and_of_breaches(folder: Path) -> None:
    text = "rules: {score: {conditions: {field: event.properties.score, greater_than: 80}}}\n"
    text += "rule_sets: {apps: {events: [applied], rules: [score]}}\n"
    (folder / "threadline.yaml").write_text(text)
    assert threadline(folder, "record", "--events", json.dumps([APPLIED]))[0] == 0
    (folder / "threadline.yaml").write_text(text.replace("80", "70"))
    code, told = threadline(folder, "record", "--events", "[]")
    assert code == 1
    assert "threadline.yaml:1: version 1 of 'score' has changed since it was first" in " ".join(told.split())
    (folder / "threadline.yaml").write_text(text.replace("score: {", "score: {version: 2, ").replace("80", "70"))
    # The decision was made by version 1, which the store remembers although nothing declares it any more.
    code, told = threadline(folder, "verify")
    assert (code, "0 breaches" in " ".join(told.split())) == (0, True)


def test_decisions_that_are_not_what_they_should_be_are_a_failure_to_scripts(folder: Path) -> None:
    text = "rules: {score: {conditions: {field: event.properties.score, greater_than: 80}}}\n"
    text += "rule_sets: {apps: {events: [applied], rules: [score]}}\n"
    (folder / "threadline.yaml").write_text(text)
    assert threadline(folder, "record", "--events", json.dumps([APPLIED]))[0] == 0
    code, told = threadline(folder, "decisions", "verify", "--json")
    assert (code, json.loads(told)["breaches"]) == (0, [])
    with opened(folder / "threadline.db") as shop:
        (made,) = shop.decisions.list(rule="score").decisions
        forged = Event(
            type="decision_made",
            identifiers=(Identifier("user_id", "ada"),),
            occurred_at=1,
            key="forged",
            source_type="internal",
            properties={**msgspec.to_builtins(made), "mode": "replay", "hash": "0" * 64},
        )
        assert shop.engine.recorder.record([forged])[0].status == "accepted"
    code, told = threadline(folder, "decisions", "verify", "--json")
    assert (code, len(json.loads(told)["breaches"])) == (1, 1)
    assert threadline(folder, "decisions", "verify")[0] == 1
