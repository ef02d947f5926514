"""What agents come with: a recorded client, the tools of an older mailing system, and the audit of what they change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys
from tests.surfaces.mcp.mcp_stage import Agent

RECORDED = Path(__file__).parents[2] / "data" / "wire" / "mcp-ts-sdk-client.jsonl"
NOT_SENT = frozenset({"host", "connection", "content-length"})
"""Headers of the connection."""


def test_a_recorded_typescript_client_is_answered(client: TestClient, keys: Keys) -> None:
    """The statuses are those that the recorded server gave, but a stream to listen to is not offered here."""
    for line in RECORDED.read_text().splitlines():
        recorded: dict[str, Any] = json.loads(line)
        headers = {name: value for name, value in recorded["headers"] if name not in NOT_SENT}
        answer = client.request(
            recorded["method"], recorded["path"], content=recorded["body"], headers={**headers, **keys.bearer("read")}
        )
        if recorded["method"] != "POST":
            assert answer.status_code == 405
            continue
        asked = json.loads(recorded["body"])
        assert answer.status_code == recorded["status"], (asked, answer.text)
        if "id" in asked:
            # The tool and the prompt that it calls by name are those of the recorded server.
            found = answer.json()
            assert found["id"] == asked["id"]
            assert ("error" in found) == (asked["method"] in ("tools/call", "prompts/get")), found


@pytest.mark.parametrize(
    ("asked", "tool", "arguments", "operation"),
    [
        ("list_sequences", "list_definitions", {"kind": "journeys"}, "journeys_list"),
        ("list_sequence_subscribers", "find_person", {"among": "journey", "name": "none"}, "journeys_people"),
        ("get_broadcast", "list_definitions", {"kind": "broadcast", "id": "none"}, "broadcasts_show"),
        ("list_broadcasts", "list_definitions", {"kind": "broadcasts"}, "broadcasts_list"),
        ("get_subscriber", "tell_about_person", {"id": "u1"}, "person"),
        ("all subscribers with a tag", "find_person", {"tag": "vip"}, "people_list"),
        ("send history", "tell_about_person", {"id": "u1", "about": "mails"}, "mail_history"),
        ("was it sent", "explain", {"what": "mail", "id": "u1", "template": "hello"}, "mail_sent"),
        ("suppression", "explain", {"what": "suppressed", "address": "x@example.com"}, "suppression_get"),
        ("was it not sent", "explain", {"what": "no_mail", "id": "u1", "template": "hello"}, "mail_why_not"),
        ("executions of a subscriber", "tell_about_person", {"id": "u1", "about": "journeys"}, "journeys_of"),
        ("counters", "ask_analytics", {"question": "mail_results", "template": "hello"}, "feedback_counters"),
        ("events of a template", "ask_analytics", {"question": "mail_events", "template": "hello"}, "feedback_events"),
    ],
)
def test_what_a_mailing_system_offers_its_agents_can_be_asked(
    admin: Agent, asked: str, tool: str, arguments: dict[str, Any], operation: str
) -> None:
    answer = admin.call(tool, **arguments)
    if "error" in answer:
        assert answer["error"]["code"] == "not_found", asked
    else:
        assert answer["operation"] == operation, asked


def test_what_an_agent_has_changed_is_in_the_audit_log(client: TestClient, keys: Keys, writer: Agent) -> None:
    done = writer.confirm("change_person", change="tag", id="u2", add=["noted"])
    assert done["operation"] == "people_tag"
    entries = client.get("/v1/audit-log", headers=keys.bearer("admin")).json()["entries"]
    assert any(entry["operation"] == "people_tag" and entry["surface"] == "mcp" for entry in entries), entries[:3]
