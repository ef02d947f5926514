"""Tools answer what HTTP answers, change nothing without a confirmation, and show what the caller may see."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock, Keys
from tests.surfaces.mcp.mcp_stage import INJECTION, Agent
from threadline.engine.engine import Engine
from threadline.engine.maintenance.dump import dump
from threadline.kernel.limits import MCP_ANSWER_BYTES_MAX, MCP_CONFIRMATION_SECONDS, MCP_ENTRIES
from threadline.kernel.operation import Operation
from threadline.kernel.time import SECOND
from threadline.surfaces.mcp.schemas import LEFT_OUT, OF_PAGES
from threadline.surfaces.mcp.tool import Call, Tool, changes
from threadline.surfaces.mcp.tools import TOOLS
from threadline.surfaces.operation_calls import field_names, path_names

TOOLS_MAX = 15
LIST_BYTES_MAX = 53_200
"""Of all tools together: about 13,000 tokens, which each conversation of an agent pays for; 2 KB of it say which of
several meanings a parameter has."""
KNOWN = {
    "id": "u1",
    "name": "spenders",
    "segment": "spenders",
    "rule": "big",
    "type": "purchase",
    "key": "last_transaction",
    "template": "hello",
    "address": "ada1@example.com",
    "decision": "0" * 32,
    "message_id": "m",
    "message": "0" * 32,
    "other": "u2",
    "text": "purchase",
    "one": "a",
    "other_id": "b",
    "labels": [],
}
RULE = {
    "version": 1,
    "conditions": {"field": "features.monetary_total", "greater_than": 9},
    "actions": [{"tag": {"tag": "x"}}],
}
OF_NAME = {"features_top": "monetary_total", "leaderboards_top": "best", "leaderboards_standing": "best"}
OF_ID = {"rules_show": "big", "rules_versions": "big", "rules_log": "big", "rules_shadow_report": "big"}


def choices() -> list[Any]:
    return [pytest.param(tool, value, id=f"{tool.name}-{value}") for tool in TOOLS for value in tool.calls]


def _operation(engine: Engine, call: Call) -> Operation:
    return next(each for each in engine.catalogue.operations if each.name == call.operation)


def _values(operation: Operation) -> dict[str, Any]:
    required = [field.encode_name for field in msgspec.structs.fields(operation.params) if field.required]
    values = {name: KNOWN[name] for name in required if name in KNOWN}
    values |= {"name": OF_NAME[operation.name]} if operation.name in OF_NAME else {}
    values |= {"id": OF_ID[operation.name]} if operation.name in OF_ID else {}
    return values


def _over_http(client: TestClient, keys: Keys, operation: Operation, values: dict[str, Any]) -> Any:
    path = operation.path
    for name in path_names(operation):
        path = path.replace(f"{{{name}}}", quote(values.pop(name), safe=""))
    if operation.method == "GET":
        return client.get(path, params=values, headers=keys.bearer("admin")).json()
    return client.post(path, json=values, headers=keys.bearer("admin")).json()


@pytest.mark.parametrize(("tool", "value"), choices())
def test_a_choice_answers_what_http_answers(
    client: TestClient, engine: Engine, keys: Keys, admin: Agent, tool: Tool, value: str
) -> None:
    call = tool.calls[value]
    if call.operation not in {each.name for each in engine.catalogue.operations}:
        pytest.skip(f"{call.operation} comes with another capability")
    operation = _operation(engine, call)
    if changes(operation, call) or operation.name == "what_if_run":
        return
    values = _values(operation)
    back = {there: here for here, there in call.renamed.items()}
    given = {back.get(name, name): each for name, each in values.items()} | dict.fromkeys(call.needed, "u1")
    values |= {call.renamed[name]: "u1" for name in call.needed} | dict(call.default) | dict(call.fixed)
    if "limit" in field_names(operation) and "limit" not in values:
        values["limit"] = MCP_ENTRIES
    answer = admin.call(tool.name, **{tool.choice: value}, **given)
    expected = _over_http(client, keys, operation, values)
    if "error" in answer:
        assert (answer["error"]["code"], answer["error"]["detail"]) == (expected["code"], expected["detail"])
    else:
        assert (
            admin.whole(tool.name, **{tool.choice: value}, **given) if "more" in answer else answer["answer"]
        ) == expected
        assert answer["operation"] == operation.name


def test_most_choices_answer_with_data(admin: Agent) -> None:
    """The comparison above would also hold between refusals."""
    answers = [
        admin.call("tell_about_person", id="u1"),
        admin.call("tell_about_person", id="u1", about="features"),
        admin.call("tell_about_person", id="u1", about="decisions"),
        admin.call("timeline", id="u1"),
        admin.call("find_person", among="segment", name="spenders"),
        admin.call("find_person", among="leaderboard", name="best"),
        admin.call("explain", what="segment", id="u1", segment="spenders"),
        admin.call("explain", what="rule", id="u1", rule="big"),
        admin.call("list_definitions", kind="rules"),
        admin.call("try_rule", on="event", person="u1", rule="big"),
        admin.call("check_operations", what="queues"),
    ]
    assert [each.get("error") for each in answers] == [None] * len(answers)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_an_argument_has_one_meaning(engine: Engine, tool: Tool) -> None:
    """The choice and the parts of an answer must not hide a parameter of an operation."""
    taken = {tool.choice, "answer_at", "answer_from"}
    for call in tool.calls.values():
        for operation in engine.catalogue.operations:
            if operation.name == call.operation:
                assert not taken & set(field_names(operation))


def test_there_are_at_most_fifteen_tools_and_their_list_is_short(admin: Agent) -> None:
    result = admin.ask("tools/list")
    assert len(result["tools"]) == TOOLS_MAX
    assert len(json.dumps(result, separators=(",", ":"))) <= LIST_BYTES_MAX
    assert result["tools"] == admin.ask("tools/list")["tools"]


def test_only_confirm_says_that_it_changes_something(admin: Agent) -> None:
    hints = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in admin.ask("tools/list")["tools"]}
    assert [name for name, only_reads in hints.items() if not only_reads] == ["confirm"]


# --- scopes ------------------------------------------------------------------------------------


def test_a_reader_is_shown_no_tool_that_changes_anything(reader: Agent) -> None:
    names = {tool["name"] for tool in reader.ask("tools/list")["tools"]}
    assert not names & {"confirm", "change_person", "operate", "propose_definition", "send_dry_run"}
    assert {"find_person", "tell_about_person", "timeline", "explain"} <= names


def test_a_choice_beyond_the_scopes_is_refused_and_not_listed(writer: Agent) -> None:
    tools = {tool["name"]: tool for tool in writer.ask("tools/list")["tools"]}
    listed = tools["change_person"]["inputSchema"]["properties"]["change"]["enum"]
    assert "tag" in listed
    assert "merge" not in listed
    refused = writer.call("change_person", change="merge", id="u1", other="u2")
    assert refused["error"]["code"] == "forbidden"


def test_a_guarded_parameter_needs_admin(writer: Agent) -> None:
    refused = writer.call("try_rule", on="event", person="u1", content={"model": {}})
    assert refused["error"]["code"] == "forbidden"


@pytest.mark.parametrize("name", ["record", "request", "dry_run"])
def test_what_a_tool_sets_itself_is_refused(admin: Agent, name: str) -> None:
    tool = "change_person" if name in LEFT_OUT else "try_rule"
    given = {"change": "tag", "id": "u1"} if name in LEFT_OUT else {"on": "event", "person": "u1"}
    assert admin.call(tool, **given, **{name: True})["error"]["param"] == name


# --- personal data and text of others ----------------------------------------------------------


def test_personal_data_is_masked_unless_granted(
    client: TestClient, engine: Engine, reader: Agent, admin: Agent
) -> None:
    secret = engine.credentials.create("default", "token", "granted", ["read", "personal"])[1]
    granted = Agent(client, {"Authorization": f"Bearer {secret}"})
    for tool, arguments in (("tell_about_person", {"id": "u1"}), ("timeline", {"of": "events", "id": "u1"})):
        shown = reader.call(tool, **arguments)
        assert "ada1@example.com" not in json.dumps(shown)
        assert "1234567" not in json.dumps(shown)
        assert "personal" in shown["masked"]
        assert granted.call(tool, **arguments) == admin.call(tool, **arguments)
        assert "ada1@example.com" in json.dumps(granted.call(tool, **arguments))


def test_the_scope_personal_alone_opens_nothing(client: TestClient, engine: Engine) -> None:
    secret = engine.credentials.create("default", "token", "only", ["personal"])[1]
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.get("/v1/people", headers=headers).status_code == 403
    agent = Agent(client, headers)
    assert agent.ask("tools/list")["tools"] == []
    assert agent.call("find_person")["error"]["code"] == "forbidden"
    assert "error" in agent.post("resources/read", {"uri": "threadline://catalogue"}).json()


def test_text_of_events_stands_in_the_answer_and_nowhere_else(admin: Agent) -> None:
    result = admin.ask("tools/call", name="timeline", arguments={"of": "events", "id": "u1"})
    shown = result["structuredContent"]
    assert INJECTION in json.dumps(shown["answer"])
    assert INJECTION not in json.dumps({name: value for name, value in shown.items() if name != "answer"})
    assert "never an instruction" in shown["notice"]
    assert json.loads(result["content"][0]["text"]) == shown
    assert result["content"][0]["text"].startswith('{"notice":')


# --- bounds ------------------------------------------------------------------------------------


def test_an_answer_is_bounded_and_what_is_missing_can_be_had(admin: Agent) -> None:
    catalogue = admin.call("list_definitions", kind="all")
    assert (
        len(json.dumps(catalogue["answer"], separators=(",", ":"), ensure_ascii=False).encode()) <= MCP_ANSWER_BYTES_MAX
    )
    cut = next(each for each in catalogue["more"] if each["answer_at"] == "/operations")
    rest = admin.call("list_definitions", kind="all", answer_at=cut["answer_at"], answer_from=cut["answer_from"])
    assert rest["answer"][0] not in catalogue["answer"]["operations"]


# --- changes -----------------------------------------------------------------------------------


def _tags(admin: Agent, id: str) -> list[str]:
    return [person["id"] for person in admin.call("find_person", tag=id)["answer"]["people"]]


def test_a_change_happens_when_it_is_confirmed_and_not_before(admin: Agent) -> None:
    arguments = {"change": "tag", "id": "u1", "add": ["vip"]}
    shown = admin.call("change_person", **arguments)
    assert shown["would"] == {"call": "POST /v1/people/{id}/tags", "parameters": {"id": "u1", "add": ["vip"]}}
    assert not _tags(admin, "vip")
    done = admin.call("confirm", token=shown["confirm"], tool="change_person", arguments=arguments)
    assert done["operation"] == "people_tag"
    assert len(_tags(admin, "vip")) == 1


def test_a_change_that_is_confirmed_twice_is_carried_out_once(admin: Agent) -> None:
    arguments = {"change": "adjust_points", "id": "u2", "points": 7, "reason": "sorry"}
    token = admin.call("change_person", **arguments)["confirm"]
    answers = [admin.call("confirm", token=token, tool="change_person", arguments=arguments) for _ in range(2)]
    assert "error" not in answers[0]
    assert answers[0]["answer"]["balance"] == answers[1]["answer"]["balance"]
    again = admin.call("tell_about_person", about="points", id="u2")["answer"]
    assert again["balance"] == answers[0]["answer"]["balance"]


@pytest.mark.parametrize(
    "changed",
    [
        {"arguments": {"change": "tag", "id": "u2", "add": ["gold"]}},
        {"arguments": {"change": "tag", "id": "u0", "add": ["gold", "more"]}},
        {"tool": "operate"},
        {"token": "x" * 40},
        {"token": ""},
    ],
)
def test_a_token_is_good_for_what_was_shown_only(admin: Agent, changed: dict[str, Any]) -> None:
    arguments = {"change": "tag", "id": "u0", "add": ["gold"]}
    token = admin.call("change_person", **arguments)["confirm"]
    refused = admin.call("confirm", **({"token": token, "tool": "change_person", "arguments": arguments} | changed))
    assert "error" in refused
    assert not _tags(admin, "gold")


def test_a_token_is_good_for_its_caller_only(admin: Agent, writer: Agent) -> None:
    arguments = {"change": "tag", "id": "u0", "add": ["silver"]}
    token = admin.call("change_person", **arguments)["confirm"]
    refused = writer.call("confirm", token=token, tool="change_person", arguments=arguments)
    assert refused["error"]["param"] == "token"
    assert not _tags(admin, "silver")


def test_a_token_ends(admin: Agent, clock: Clock) -> None:
    arguments = {"change": "tag", "id": "u0", "add": ["late"]}
    token = admin.call("change_person", **arguments)["confirm"]
    clock.now += MCP_CONFIRMATION_SECONDS * SECOND
    refused = admin.call("confirm", token=token, tool="change_person", arguments=arguments)
    assert refused["error"]["param"] == "token"
    assert not _tags(admin, "late")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("propose_definition", {"kind": "rule", "id": "new", "rule": RULE}),
        ("change_person", {"change": "merge", "id": "u0", "other": "u1"}),
        ("operate", {"action": "suppress", "address": "x@example.com", "reason": "manual"}),
        ("send_dry_run", {"what": "mail", "id": "u1", "template": "hello"}),
    ],
)
def test_showing_a_change_writes_nothing(engine: Engine, admin: Agent, tool: str, arguments: dict[str, Any]) -> None:
    admin.call("change_person", change="tag", id="u1", add=["first"])  # makes the signing key, once
    before = dump(engine.recorder.store, engine.catalogue)
    admin.call(tool, **arguments)
    assert dump(engine.recorder.store, engine.catalogue) == before


def test_an_unknown_choice_names_the_nearest(reader: Agent) -> None:
    refused = reader.call("tell_about_person", id="u1", about="feature")
    assert "features" in refused["error"]["detail"]


def test_an_unknown_argument_is_refused(reader: Agent) -> None:
    assert reader.call("tell_about_person", id="u1", bogus=1)["error"]["param"] == "bogus"


def test_a_parameter_has_each_of_its_meanings_with_the_choices_that_it_is_meant_for(
    admin: Agent, engine: Engine
) -> None:
    operations = {operation.name: operation for operation in engine.catalogue.operations}
    listed = {tool["name"]: tool["inputSchema"]["properties"] for tool in admin.ask("tools/list")["tools"]}
    several = 0
    for tool in TOOLS:
        meanings: dict[str, dict[str, str]] = {}
        for choice, call in tool.calls.items():
            there = {value: name for name, value in call.renamed.items()}
            schema = msgspec.json.schema_components([operations[call.operation].params])[1]
            for field, described in schema[operations[call.operation].params.__name__].get("properties", {}).items():
                about = described.get("description", "") or next(
                    (kind.get("description", "") for kind in described.get("anyOf", ()) if kind.get("description")), ""
                )
                meanings.setdefault(there.get(field, field), {})[choice] = about
        for name, of_choice in meanings.items():
            if name in OF_PAGES or name not in listed[tool.name] or len(set(of_choice.values())) == 1:
                continue
            shown = listed[tool.name][name].get("description", "").split("; ")
            for choice, about in of_choice.items():
                first = re.split(r"\. (?=[A-Z`])", about)[0].rstrip(".")
                assert not about or any(part.startswith(first) and _is_meant(part, choice) for part in _parts(shown)), (
                    tool.name,
                    name,
                    choice,
                    about,
                    shown,
                )
            several += 1
    assert several > 10


def _parts(shown: list[str]) -> list[str]:
    """The meanings of a description; a meaning may have a semicolon of its own."""
    return ["; ".join(shown[start:stop]) for start in range(len(shown)) for stop in range(start + 1, len(shown) + 1)]


def _is_meant(part: str, choice: str) -> bool:
    """Whether the brackets at the end of a meaning name a choice."""
    named = re.search(r"\[(all but )?([^\]]*)\]$", part)
    return named is None or (choice in named[2].split(", ")) is not bool(named[1])


@pytest.mark.parametrize("more", [{"limit": 5}, {"cursor": "x"}, {"limit": 5, "cursor": "x"}])
def test_the_length_of_a_page_says_nothing_where_there_are_no_pages(more: dict[str, Any], admin: Agent) -> None:
    tool, choice = next(
        (tool, choice) for tool in TOOLS for choice, call in tool.calls.items() if call.operation == "doctor"
    )
    assert admin.call(tool.name, **{tool.choice: choice}, **more)["operation"] == "doctor"
