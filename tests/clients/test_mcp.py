"""Real clients of the Model Context Protocol list and call every tool; its conformance suite finds nothing."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.calls import Who
from tests.clients.conftest import HERE, NODE_SECONDS, RunNode
from tests.clients.server import ROOT, Server

pytestmark = pytest.mark.client

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
PURCHASE = "purchase_completed"


@pytest.fixture
def person(server: Server, who: Who) -> str:
    """Somebody with a purchase and a segment to be explained."""
    name = who.email.partition("@")[0]
    events = [
        {
            "type": PURCHASE,
            "identifiers": {"user_id": name},
            "key": f"{name}-{number}",
            "occurred_at": "2026-01-01T00:00:00Z",
            "properties": {"total": 9.5, "currency": "EUR", "note": "see <b>"},
        }
        for number in range(2)
    ]
    headers = {"Authorization": f"Bearer {server.token}"}
    assert httpx.post(f"{server.url}/v1/events", json={"events": events}, headers=headers).status_code == 200
    return name


def calls_of(person: str) -> list[dict[str, Any]]:
    """A call of every tool."""
    tag = {"change": "tag", "id": person, "add": ["seen"]}
    return [
        {"name": "find_person", "arguments": {"identifier": person}},
        {"name": "tell_about_person", "arguments": {"id": person, "about": "interest_summary"}},
        {"name": "timeline", "arguments": {"of": "events", "id": person, "type": PURCHASE}},
        {"name": "explain", "arguments": {"what": "merge", "id": person, "other": person}},
        {"name": "ask_analytics", "arguments": {"question": "mail_results", "template": "none"}},
        {"name": "try_rule", "arguments": {"on": "tried"}},
        {"name": "diff_rule", "arguments": {"by": "shadow", "id": "none"}},
        {"name": "list_definitions", "arguments": {"kind": "features"}},
        {"name": "propose_definition", "arguments": {"kind": "alert", "id": "hello", "title": "Hello"}},
        {"name": "preview_mail", "arguments": {"template": "none"}},
        {"name": "send_dry_run", "arguments": {"what": "mail", "id": person, "template": "none"}},
        {"name": "change_person", "arguments": tag},
        {"name": "check_operations", "arguments": {"what": "queues"}},
        {"name": "operate", "arguments": {"action": "suppress", "address": "no@example.com", "reason": "manual"}},
        {"name": "confirm", "arguments": {"tool": "change_person", "arguments": tag, "token": {"$confirm": 11}}},
    ]


def check(server: Server, person: str, tools: list[str], results: list[dict[str, Any]]) -> None:
    """What a client got is what HTTP answers."""
    calls = calls_of(person)
    assert sorted(tools) == sorted(call["name"] for call in calls)
    answers = dict(zip((call["name"] for call in calls), (each["structuredContent"] for each in results), strict=True))
    for tool, path, params in (
        ("tell_about_person", f"/v1/people/{person}/interests/summary", {"limit": 20}),
        ("timeline", f"/v1/people/{person}/events", {"limit": 20, "type": PURCHASE}),
        ("check_operations", "/v1/effects/queues", {}),
        ("ask_analytics", "/v1/feedback/counters", {"template": "none"}),
    ):
        # The tag that `confirm` adds comes between the two answers.
        shown, read = answers[tool]["answer"], server.read(path, **params)
        assert {**shown, "position": 0} == {**read, "position": 0}, tool
    found = answers["find_person"]["answer"]["people"]
    assert [each["id"] for each in found] == [server.read(f"/v1/people/{person}")["id"]]
    assert found[0]["id"] in {each["id"] for each in server.read("/v1/people", tag="seen")["people"]}
    missing = server.get("/v1/rules/none/shadow").json()
    assert answers["diff_rule"]["error"]["detail"] == missing["detail"]
    for result in results:
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_the_typescript_client_calls_every_tool(server: Server, node: RunNode, person: str) -> None:
    found = node("mcp.mjs", url=f"{server.url}/mcp", token=server.token, calls=calls_of(person))
    assert found["server"]["name"] == "threadline"
    check(server, person, [tool["name"] for tool in found["tools"]], found["results"])
    assert found["read"]["contents"][0]["text"].startswith("# Words")
    assert len(found["prompts"]) == 4


@pytest.mark.parametrize("mode", [MODERN, "legacy", "auto"])
def test_the_python_client_calls_every_tool(server: Server, person: str, mode: str) -> None:
    mcp = pytest.importorskip("mcp")
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def run() -> tuple[list[str], list[dict[str, Any]], str]:
        http_client = create_mcp_http_client(headers={"Authorization": f"Bearer {server.token}"})
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http_client)
        async with mcp.Client(transport, mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            results: list[dict[str, Any]] = []
            for call in calls_of(person):
                arguments = dict(call["arguments"])
                if call["name"] == "confirm":
                    arguments["token"] = results[11]["structuredContent"]["confirm"]
                result = await client.call_tool(call["name"], arguments)
                results.append(result.model_dump(by_alias=True, mode="json"))
            return tools, results, client.protocol_version

    tools, results, version = asyncio.run(run())
    assert version == (LEGACY if mode == "legacy" else MODERN)
    check(server, person, tools, results)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_python_client_starts_the_command(tmp_path: Path, mode: str) -> None:
    mcp = pytest.importorskip("mcp")

    async def run() -> tuple[list[str], Any, str]:
        command = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "threadline.surfaces.cli", "mcp", "--file", str(tmp_path / "t.db")],
            env={"PYTHONPATH": str(ROOT / "src")},
            cwd=str(tmp_path),
        )
        async with mcp.Client(command, mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            return tools, await client.call_tool("find_person", {}), client.protocol_version

    subprocess.run(
        [sys.executable, "-c", f"import threadline; threadline.open({str(tmp_path / 't.db')!r}).close()"],
        check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    tools, result, version = asyncio.run(run())
    assert "tell_about_person" in tools
    assert "confirm" not in tools
    assert result.structured_content["answer"]["people"] == []
    assert version == (LEGACY if mode == "legacy" else MODERN)


# --- conformance -------------------------------------------------------------------------------

OLDER = frozenset(
    {
        "server-initialize",
        "ping",
        "logging-set-level",
        "completion-complete",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    }
)
NEWER = frozenset(
    {
        "server-stateless",
        "caching",
        "http-header-validation",
        "sep-2164-resource-not-found",
        "input-required-result-unsupported-methods",
    }
)
"""The scenarios that any server can pass. All others call tools, resources and prompts that only a server made for the
suite has."""
NEED_SUCH_A_SERVER = frozenset(
    {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    }
)
"""Checks of `server-stateless` that do so too."""


@pytest.fixture
def with_token(server: Server) -> Iterator[str]:
    """The address of a proxy that adds the token, which the suite cannot be given."""

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            asked.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                asked.putheader(name, value)
            asked.putheader("Authorization", f"Bearer {server.token}")
            asked.endheaders(body)
            answer = asked.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type", ""))
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            asked.close()

        do_GET = do_DELETE = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """The suite cuts connections off."""

    proxy = Quiet(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{proxy.server_address[1]}/mcp"
    proxy.shutdown()
    thread.join()
    proxy.server_close()


def test_the_conformance_suite_finds_nothing(with_token: str, node: RunNode, tmp_path: Path) -> None:
    package = json.loads((HERE / "node_modules/@modelcontextprotocol/conformance/package.json").read_text())
    wanted = OLDER if package["version"].startswith("0.1.") else OLDER | NEWER
    command = ["node", str(HERE / "node" / "conformance.mjs"), "server", "--url", with_token, "--suite", "all"]
    # It ends with 1, because of the scenarios for a server made for it.
    subprocess.run(
        [*command, "-o", str(tmp_path)], cwd=tmp_path, capture_output=True, timeout=NODE_SECONDS, check=False
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for file in tmp_path.glob("**/checks.json"):
        scenario = re.match(r"server-(.+?)-\d{4}-\d\d-\d\dT", file.parent.name)
        assert scenario is not None, file
        found[scenario[1]] = json.loads(file.read_text())
    assert wanted <= found.keys(), sorted(found)
    bad = {
        (scenario, check["id"]): check.get("errorMessage")
        for scenario in wanted
        for check in found[scenario]
        if check["status"] in ("FAILURE", "WARNING") and check["id"] not in NEED_SUCH_A_SERVER
    }
    assert bad == {}
