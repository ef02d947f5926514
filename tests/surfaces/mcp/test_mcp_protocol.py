"""The protocol in both eras, over HTTP: what is answered, and what is refused how."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys, client_of
from tests.surfaces.mcp.mcp_stage import VERSION, Agent
from threadline.engine.engine import Engine
from threadline.kernel.limits import MCP_REQUEST_BYTES_MAX
from threadline.settings import Settings
from threadline.surfaces.http.addresses import mcp
from threadline.surfaces.mcp.protocol import LEGACY, Protocol, Request
from threadline.surfaces.mcp.tool import Caller

META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture
def legacy(client: TestClient, keys: Keys) -> Agent:
    return Agent(client, keys.bearer("read"), is_modern=False)


def _posted(client: TestClient, keys: Keys, message: Any, **headers: str) -> Any:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    return client.post(
        "/mcp", content=content, headers={**keys.bearer("read"), "content-type": "application/json", **sent}
    )


def _modern(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}


# --- stateless: 2026-07-28 ---------------------------------------------------------------------


def test_discover_says_versions_and_capabilities(reader: Agent) -> None:
    result = reader.ask("server/discover")
    assert result["supportedVersions"][0] == VERSION
    assert set(result["capabilities"]) == {"tools", "resources", "prompts", "completions"}
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "threadline"


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
def test_a_list_says_how_long_it_is_fresh_and_for_whom(reader: Agent, legacy: Agent, method: str) -> None:
    result = reader.ask(method)
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "private"
    assert {"ttlMs", "cacheScope", "resultType", "_meta"} & legacy.ask(method).keys() == set()


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp_protocol_version": "2025-11-25", "mcp_method": "tools/list"}, -32020),
        ({"mcp_protocol_version": VERSION}, -32020),
        ({"mcp_protocol_version": VERSION, "mcp_method": "tools/call"}, -32020),
        ({"mcp_method": "tools/list"}, -32020),
    ],
)
def test_headers_that_do_not_match_are_refused(
    client: TestClient, keys: Keys, headers: dict[str, str], code: int
) -> None:
    answer = _posted(client, keys, _modern("tools/list"), **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_the_name_of_a_tool_must_be_that_of_its_header(client: TestClient, keys: Keys) -> None:
    headers = {"mcp_protocol_version": VERSION, "mcp_method": "tools/call"}
    message = _modern("tools/call", name="find_person", arguments={})
    assert _posted(client, keys, message, mcp_name="timeline", **headers).json()["error"]["code"] == -32020
    assert "result" in _posted(client, keys, message, mcp_name="find_person", **headers).json()
    encoded = f"=?base64?{base64.b64encode(b'find_person').decode()}?="
    assert "result" in _posted(client, keys, message, mcp_name=encoded, **headers).json()


def test_an_unknown_version_is_answered_with_those_that_there_are(client: TestClient, keys: Keys) -> None:
    message = _modern("tools/list")
    message["params"]["_meta"] = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    answer = _posted(client, keys, message, mcp_protocol_version="2099-01-01", mcp_method="tools/list")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32022
    assert answer.json()["error"]["data"] == {"supported": [VERSION, *LEGACY], "requested": "2099-01-01"}


@pytest.mark.parametrize("missing", sorted(META))
def test_an_envelope_without_a_part_is_refused(client: TestClient, keys: Keys, missing: str) -> None:
    message = _modern("tools/list")
    message["params"]["_meta"] = {name: value for name, value in META.items() if name != missing}
    answer = _posted(client, keys, message, mcp_protocol_version=VERSION, mcp_method="tools/list")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("method", ["no/such", "initialize", "ping", "logging/setLevel"])
def test_a_method_that_this_era_does_not_have_is_not_found(client: TestClient, keys: Keys, method: str) -> None:
    answer = _posted(client, keys, _modern(method), mcp_protocol_version=VERSION, mcp_method=method)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


# --- with a handshake --------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY)
def test_a_handshake_agrees_on_the_version_of_the_client(legacy: Agent, version: str) -> None:
    result = legacy.ask(
        "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "c", "version": "1"}
    )
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "threadline"


def test_a_handshake_of_an_unknown_version_offers_the_newest(legacy: Agent) -> None:
    assert legacy.ask("initialize", protocolVersion="1999-01-01")["protocolVersion"] == LEGACY[0]


def test_a_ping_and_a_log_level_are_answered_with_nothing(legacy: Agent) -> None:
    assert legacy.ask("ping") == {}
    assert legacy.ask("logging/setLevel", level="info") == {}


def test_an_error_of_the_older_era_travels_under_200(legacy: Agent) -> None:
    answer = legacy.post("no/such", {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32601)


def test_both_eras_answer_a_tool_alike(reader: Agent, legacy: Agent) -> None:
    assert reader.call("tell_about_person", id="u1") == legacy.call("tell_about_person", id="u1")


# --- messages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b"{}", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    ],
)
def test_what_is_no_request_is_refused(client: TestClient, keys: Keys, body: bytes, code: int) -> None:
    answer = _posted(client, keys, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


@pytest.mark.parametrize("id", [7, "seven"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"params": "x"},
        {"params": []},
        {"params": 0},
        {"method": 1},
        {"method": None},
        {"jsonrpc": "1.0"},
        {"method": "nobody"},
    ],
)
def test_whatever_is_wrong_with_a_message_the_answer_has_its_id(
    client: TestClient, keys: Keys, wrong: dict[str, Any], id: int | str
) -> None:
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/list", **wrong}
    answer = _posted(client, keys, message, mcp_protocol_version="2025-11-25").json()
    assert (answer["id"], "error" in answer) == (id, True)


@pytest.mark.parametrize("method", ["ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list"])
def test_params_of_null_are_no_params(client: TestClient, keys: Keys, method: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method}
    messages = (message, {**message, "params": None})
    absent, null = (_posted(client, keys, each, mcp_protocol_version="2025-11-25") for each in messages)
    assert (null.status_code, null.json()) == (200, absent.json())
    assert "result" in null.json()


def test_a_notification_is_accepted_without_an_answer(client: TestClient, keys: Keys) -> None:
    for version in (VERSION, "2025-11-25"):
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = _posted(client, keys, message, mcp_protocol_version=version)
        assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize(
    "params",
    [
        {"name": "nobody"},
        {"name": 1},
        {},
        {"name": "find_person", "arguments": []},
        {"name": "find_person", "arguments": 1},
    ],
)
def test_a_call_that_names_no_tool_is_an_error_of_the_protocol(legacy: Agent, params: dict[str, Any]) -> None:
    assert legacy.post("tools/call", params).json()["error"]["code"] == -32602


def test_a_failure_of_a_tool_is_an_answer_that_a_model_can_read(reader: Agent) -> None:
    result = reader.ask("tools/call", name="tell_about_person", arguments={"id": "nobody"})
    assert result["isError"]
    assert result["structuredContent"]["error"]["code"] == "not_found"


def test_a_fault_of_ours_says_nothing_of_the_inside(
    engine: Engine, reader: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> int:
        raise KeyError("secret of the inside")

    monkeypatch.setattr(engine, "now", broken)
    answer = reader.post("tools/call", {"name": "find_person", "arguments": {}}).text
    assert "-32603" in answer
    assert "secret" not in answer


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["tools/call", "resources/read", "prompts/get", "initialize", "completion/complete", "tools/list"]),
    st.dictionaries(
        st.sampled_from(["name", "arguments", "uri", "cursor", "protocolVersion", "ref"]), _JSON, max_size=4
    ),
    st.dictionaries(st.sampled_from(["id", "about", "among", "of", "limit", "answer_at", "answer_from"]), _JSON),
)
def test_no_message_is_answered_with_a_fault(
    engine: Engine, method: str, params: dict[str, Any], arguments: dict[str, Any]
) -> None:
    answering, caller = Protocol(engine, "1"), Caller("default", "agent", ("read",))
    given = {**params, "arguments": arguments} if method == "tools/call" else params
    for name in ("find_person", "tell_about_person", "timeline"):
        named = {"name": name} if method == "tools/call" else {}
        answer = answering.answer(Request(1, method, {**given, **named}, False), caller)
        assert answer.get("error", {}).get("code") != -32603, answer


# --- who may ask -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "value"),
    [("origin", "http://evil.example.com"), ("origin", "null"), ("origin", "http://localhost.evil.example.com")],
)
def test_a_page_of_another_origin_is_refused(client: TestClient, keys: Keys, header: str, value: str) -> None:
    assert _posted(client, keys, _modern("tools/list"), **{header: value}).status_code == 403


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8787"])
def test_a_page_of_this_machine_is_answered(client: TestClient, keys: Keys, origin: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert _posted(client, keys, message, origin=origin).status_code == 200


def test_the_origin_of_the_public_address_is_answered(engine: Engine, keys: Keys) -> None:
    settings = Settings(access_log=False, public_url="https://shop.example.com")
    with client_of(engine, settings) as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert _posted(client, keys, message, origin="https://shop.example.com").status_code == 200
        assert _posted(client, keys, message, origin="https://other.example.com").status_code == 403


def test_without_a_token_nothing_is_answered(client: TestClient, keys: Keys) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert client.post("/mcp", json=message).status_code == 401
    assert client.post("/mcp", json=message, headers=keys.bearer("write")).status_code == 403


def test_another_workspace_is_not_seen(client: TestClient, keys: Keys) -> None:
    stranger = Agent(client, keys.bearer("stranger"))
    assert stranger.call("find_person")["answer"]["people"] == []
    assert stranger.call("tell_about_person", id="u1")["error"]["code"] == "not_found"


@pytest.mark.parametrize("method", ["get", "delete"])
def test_there_is_no_stream_and_no_session(client: TestClient, keys: Keys, method: str) -> None:
    assert getattr(client, method)("/mcp", headers=keys.bearer("read")).status_code == 405


def test_a_long_message_is_refused(client: TestClient, keys: Keys) -> None:
    assert _posted(client, keys, b"x" * (MCP_REQUEST_BYTES_MAX + 1)).status_code == 413


def test_too_many_calls_are_refused_and_counted(engine: Engine, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "MCP_CALLS_BURST", 5)
    monkeypatch.setattr(mcp, "MCP_CALLS_PER_SECOND", 0.001)
    with client_of(engine) as client:
        agent = Agent(client, keys.bearer("read"))
        params = {"name": "list_definitions", "arguments": {"kind": "topics"}}
        statuses = [agent.post("tools/call", params).status_code for _ in range(7)]
        assert statuses == [200] * 5 + [429] * 2
        named = Agent(client, keys.bearer("admin"))
        named.post("tools/call", {"name": "ada@example.com", "arguments": {}})
        metrics = client.get("/metrics", headers=keys.bearer("admin")).text
    assert 'threadline_mcp_calls_total{tool="list_definitions",outcome="ok"} 5' in metrics
    assert 'threadline_mcp_calls_total{tool="unknown",outcome="protocol_error"} 1' in metrics
    assert "ada@example.com" not in metrics


# --- resources and prompts ---------------------------------------------------------------------


def test_every_resource_can_be_read(reader: Agent) -> None:
    for resource in reader.ask("resources/list")["resources"]:
        contents = reader.ask("resources/read", uri=resource["uri"])["contents"]
        assert contents[0]["mimeType"] == resource["mimeType"]
        assert contents[0]["text"]


def test_a_resource_of_a_template_is_the_answer_of_its_operation(client: TestClient, keys: Keys, admin: Agent) -> None:
    found = json.loads(admin.ask("resources/read", uri="threadline://definitions/rules/big")["contents"][0]["text"])
    assert found["answer"] == client.get("/v1/rules/big", headers=keys.bearer("admin")).json()


def test_a_resource_that_is_not_there_has_the_code_of_its_era(reader: Agent, legacy: Agent) -> None:
    for uri in ("threadline://nothing", "threadline://definitions/rules/nobody", "file:///etc/passwd"):
        assert reader.post("resources/read", {"uri": uri}).json()["error"]["code"] == -32602
        assert legacy.post("resources/read", {"uri": uri}).json()["error"]["code"] == -32002


def test_every_prompt_can_be_had_with_its_arguments(reader: Agent) -> None:
    for prompt in reader.ask("prompts/list")["prompts"]:
        arguments = {each["name"]: "{curly}" for each in prompt["arguments"]}
        message = reader.ask("prompts/get", name=prompt["name"], arguments=arguments)["messages"][0]
        assert message["role"] == "user"
        assert ("{curly}" in message["content"]["text"]) == bool(arguments)
        if arguments:
            assert reader.post("prompts/get", {"name": prompt["name"]}).json()["error"]["code"] == -32602


def test_a_prompt_names_only_tools_that_there_are(admin: Agent) -> None:
    names = {tool["name"] for tool in admin.ask("tools/list")["tools"]}
    for prompt in admin.ask("prompts/list")["prompts"]:
        arguments = {each["name"]: "x" for each in prompt["arguments"]}
        text = admin.ask("prompts/get", name=prompt["name"], arguments=arguments)["messages"][0]["content"]["text"]
        assert set(text.split("`")[1::2]) <= names
