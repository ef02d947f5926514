"""The audit log: whoever changes something through any surface is named in it, before the answer leaves."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import threadline
from tests.surfaces.cli_stage import call, composed, store
from tests.surfaces.conftest import NOW, Clock, Keys
from threadline.app import operations
from threadline.engine.audit_log import AuditLog
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.audit import AUDIT_LOG, AuditEntry
from threadline.kernel.errors import StoreFull, Unavailable
from threadline.kernel.operation import Operation
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore
from threadline.surfaces import operation_calls

__all__ = ["call", "composed", "store"]
SURFACES = Path(operation_calls.__file__).parent
RUN_ELSEWHERE = {"operation_calls.py", "user_alerts.py"}
"""The one place, and the page of users, which says why."""


def entries(engine: Engine, **asked: Any) -> list[AuditEntry]:
    return engine.audit_log.page("default", **asked)[0]


def test_every_surface_runs_operations_in_one_place():
    found = set()
    for path in SURFACES.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if ".run" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run":
                owner = ast.unparse(node.func.value)
                given = [ast.unparse(each) for each in node.args]
                if len(given) == 2 and "context" in given[0] and owner != "operation_calls":
                    found.add(path.name)
    assert found <= RUN_ELSEWHERE
    assert "operation_calls.py" in found


def test_the_operations_that_are_no_get_and_are_not_noted():
    quiet = {each.name for each in operations() if each.method != "GET" and not each.is_audited}
    assert quiet == {
        "broadcasts_audience",
        "decisions_evaluate",
        "definitions_check",
        "features_preview",
        "features_training_set",
        "gallery_preview",
        "journeys_preview",
        "feedback_notify",
        "feedback_receive",
        "journeys_what_if",
        "leaderboards_preview",
        "mail_preview",
        "mail_preview_draft",
        "points_preview",
        "record",
        "rejected_resubmit",
        "segments_preview",
        "streaks_preview",
        "webhooks_preview",
    }


def test_a_call_over_http_is_noted_with_its_token_object_and_what_was_given(
    client: TestClient, keys: Keys, engine: Engine
):
    client.post(
        "/v1/events",
        json={"events": [{"type": "x", "key": "1", "identifiers": {"user_id": "42"}}]},
        headers=keys.bearer("writer"),
    )
    answer = client.post("/v1/people/user_id:42/tags", json={"add": ["vip"]}, headers=keys.bearer("writer"))
    assert answer.status_code == 200
    [entry] = entries(engine)
    assert entry == AuditEntry(
        at=NOW,
        who="writer",
        credential="token",
        surface="http",
        operation="people_tag",
        object={"id": "user_id:42"},
        given={"add": ["vip"]},
        outcome="done",
        id=entry.id,
    )


@pytest.mark.parametrize(
    ("path", "body", "outcome"),
    [
        ("/v1/people/user_id:nobody/tags", {"add": ["vip"]}, "not_found"),
        ("/v1/quarantine/none", {"join": False}, "not_found"),
        ("/v1/accounts", {"name": "a/b", "role": "viewer", "password": "long enough to be one"}, "invalid_value"),
    ],
)
def test_a_call_that_fails_is_noted_with_the_code_of_its_error(client, keys, engine, path, body, outcome):
    assert client.post(path, json=body, headers=keys.bearer("admin")).status_code >= 400
    [entry] = entries(engine)
    assert entry.outcome == outcome


def test_neither_a_read_nor_an_event_nor_a_refused_caller_is_noted(client: TestClient, keys: Keys, engine: Engine):
    client.get("/v1/people", headers=keys.bearer("admin"))
    client.post("/v1/events", json={"events": []}, headers=keys.bearer("admin"))
    client.post("/v1/keys", json={"name": "x"}, headers=keys.bearer("read"))
    client.post("/v1/keys", json={"nme": "x"}, headers=keys.bearer("admin"))
    assert entries(engine) == []


def test_passwords_reasons_and_text_that_somebody_wrote_are_left_out(client: TestClient, keys: Keys, engine: Engine):
    secret = "correct horse battery"
    account = {"name": "ada", "role": "viewer", "password": secret}
    assert client.post("/v1/accounts", json=account, headers=keys.bearer("admin")).status_code == 201
    client.post("/v1/suppression", json={"address": "a@b.example", "note": "knows"}, headers=keys.bearer("admin"))
    client.post("/v1/alerts/sale", json={"title": "A sale for Ada"}, headers=keys.bearer("admin"))
    stored = b"".join(item.value for item in scan_pages(engine.store, AUDIT_LOG))
    for hidden in (secret, "knows", "sale for"):
        assert hidden.encode() not in stored
    by_operation = {entry.operation: entry for entry in entries(engine)}
    assert by_operation["accounts_create"].given == {"name": "ada", "role": "viewer"}
    assert by_operation["suppression_add"].given["address"] == "a@b.example"
    assert by_operation["alerts_write"].given["title"] == "text of 14"


def test_a_call_in_python_is_noted_and_one_of_the_command_line_names_its_user(store: Path, call: Any, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    assert call("people", "tag", "42", "--add", "vip").code == 0
    with threadline.open(store) as tl:
        tl.people.tag("42", add=["new"])
        python, cli = tl.engine.audit_log.page("default")[0]
    assert (cli.who, cli.credential, cli.surface) == ("ada", "os_user", "cli")
    assert (python.who, python.credential, python.surface) == ("direct", "", "python")


def test_what_is_done_and_cannot_be_noted_is_an_error_that_says_so(engine: Engine, monkeypatch):
    def full(workspace: str, entry: AuditEntry) -> None:
        raise StoreFull("no room")

    monkeypatch.setattr(engine.audit_log, "note", full)
    operation: Operation = engine.catalogue.operation("keys_create")
    with pytest.raises(Unavailable, match="keys_create ended with 'done', but the audit log could not be written"):
        operation_calls.call(operation, Context(engine, "default", NOW), {"name": "shop"}, strict=True)


def noted(log: AuditLog, who: str = "ada", operation: str = "people_tag", **more: Any) -> None:
    fields = {"object": {}, "given": {}, "outcome": "done", **more}
    log.note("shop", AuditEntry(at=0, who=who, credential="token", surface="http", operation=operation, **fields))


def test_pages_follow_each_other_newest_first_without_a_gap_or_an_entry_twice():
    clock = Clock()
    store = MemoryStore()
    logs = [AuditLog(store, clock), AuditLog(store, clock)]
    for number in range(50):
        clock.now += number % 3  # some at the same microsecond, by two processes
        noted(logs[number % 2], who=str(number))
    found: list[str] = []
    before = ""
    while True:
        page, before = logs[0].page("shop", before=before, limit=7)
        found += [entry.who for entry in page]
        if not before:
            break
    assert sorted(found, key=int) == [str(number) for number in range(50)]
    ids = [entry.id for entry in logs[0].page("shop", limit=100)[0]]
    assert ids == sorted(ids, reverse=True)


def test_a_page_looks_at_a_bounded_number_of_entries_and_says_where_to_go_on(monkeypatch):
    monkeypatch.setattr("threadline.engine.audit_log.AUDIT_LOG_READ_MAX", 100)
    clock = Clock()
    log = AuditLog(MemoryStore(), clock)
    noted(log, who="bob")
    for _ in range(150):
        clock.now += 1
        noted(log)
    page, before = log.page("shop", wanted=lambda entry: entry.who == "bob")
    assert (page, bool(before)) == ([], True)
    page, before = log.page("shop", before=before, wanted=lambda entry: entry.who == "bob")
    assert ([entry.who for entry in page], before) == (["bob"], "")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, 4),
        ({"who": "admin"}, 3),
        ({"operation": "keys_create"}, 2),
        ({"operation": "keys"}, 3),
        ({"object": "user_id:42"}, 1),
        ({"outcome": "not_found"}, 2),
        ({"start": "2026-03-02"}, 1),
        ({"stop": "2026-03-02"}, 3),
    ],
)
def test_the_list_by_who_operation_object_outcome_and_time(
    client: TestClient, keys: Keys, clock: Clock, asked: dict[str, str], expected: int
):
    admin = keys.bearer("admin")
    client.post("/v1/keys", json={"name": "a"}, headers=admin)
    client.post("/v1/keys", json={"name": "b"}, headers=admin)
    client.post("/v1/people/user_id:42/tags", json={"add": ["vip"]}, headers=keys.bearer("writer"))
    clock.now += DAY
    client.delete("/v1/keys/none", headers=admin)
    answer = client.get("/v1/audit-log", params=asked, headers=admin)
    assert len(answer.json()["entries"]) == expected
    assert client.get("/v1/audit-log", headers=keys.bearer("writer")).status_code == 403


def test_erasing_a_person_takes_their_names_out_of_the_log_and_leaves_the_rest(
    client: TestClient, keys: Keys, engine: Engine
):
    admin = keys.bearer("admin")
    names = {"user_id": "ada-42", "email": "ada@shop.example"}
    for identifiers in (names, {"user_id": "bob-43"}):
        event = {"type": "x", "key": identifiers["user_id"], "identifiers": identifiers}
        client.post("/v1/events", json={"events": [event]}, headers=admin)
    person = client.get("/v1/people/user_id:ada-42", headers=admin).json()["id"]
    for ref in ("ada-42", "email:ADA@shop.example", person, "user_id:bob-43"):
        assert client.post(f"/v1/people/{ref}/tags", json={"add": ["vip"]}, headers=admin).status_code == 200
    client.post("/v1/suppression", json={"address": "ada@shop.example"}, headers=admin)
    client.post("/v1/people/ada-42/merge", json={"other": "bob-43", "dry_run": True}, headers=admin)
    erased = client.post("/v1/people/ada-42/erase", json={"request": "1"}, headers=admin)
    assert erased.json()["done"], erased.text
    stored = b"".join(item.value for item in scan_pages(engine.store, AUDIT_LOG)).lower()
    for name in ("ada-42", "ada@shop.example", person):
        assert name.encode() not in stored
    kept = [(entry.operation, entry.object) for entry in reversed(entries(engine))]
    tags = ("people_tag", {"id": "erased"})
    assert kept[:4] == [tags, tags, tags, ("people_tag", {"id": "user_id:bob-43"})]
    assert kept[-1] == ("people_erase", {})


def test_a_password_is_read_from_the_standard_input_and_stands_in_no_argument(store: Path, call: Any, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    made = call("accounts", "create", "--name", "ada", "--role", "marketer", "--json")
    assert json.loads(made.out)["role"] == "marketer"
    monkeypatch.setattr("sys.stdin", io.StringIO("another long password\n"))
    assert call("accounts", "change", "ada", "--password").code == 0
    assert call("accounts", "change", "ada", "--role", "operator").code == 0
    assert call("accounts", "create", "--name", "bob", "--role", "viewer", "--password", "x").code == 2
    with threadline.open(store) as tl:
        session, _ = tl.engine.accounts.sign_in("ada", "another long password")
    assert session.role == "operator"
