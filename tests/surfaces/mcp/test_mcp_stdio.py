"""``threadline mcp``: a message a line, nothing else on the output, and only what the options grant."""

from __future__ import annotations

import json
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

import threadline
from tests import forked
from tests.surfaces.mcp.mcp_stage import VERSION, fill
from threadline.engine.engine import Engine
from threadline.kernel.limits import MCP_REQUEST_BYTES_MAX
from threadline.surfaces.mcp.protocol import Protocol
from threadline.surfaces.mcp.stdio import serve
from threadline.surfaces.mcp.tool import Caller

_META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
SECONDS = 60


def _served(engine: Engine, *lines: bytes) -> list[dict[str, Any]]:
    outgoing = BytesIO()
    caller = Caller("default", "mcp", ("read",))
    serve(Protocol(engine, "1"), lambda: caller, BytesIO(b"\n".join(lines) + b"\n"), outgoing)
    return [json.loads(line) for line in outgoing.getvalue().splitlines()]


def _line(id: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def test_both_eras_are_answered_on_one_stream(engine: Engine) -> None:
    answers = _served(
        engine,
        _line(1, "server/discover", _meta=_META),
        _line(2, "initialize", protocolVersion="2025-11-25", capabilities={}),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b"",
        _line(3, "tools/call", name="find_person", arguments={}),
        _line(4, "tools/call", name="find_person", arguments={}, _meta=_META),
    )
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4]
    assert answers[2]["result"]["structuredContent"] == answers[3]["result"]["structuredContent"]
    assert ["resultType" in answer["result"] for answer in answers] == [True, False, False, True]


def test_a_probe_without_an_envelope_is_refused_so_that_the_client_falls_back(engine: Engine) -> None:
    assert _served(engine, _line(1, "server/discover"))[0]["error"]["code"] == -32602


def test_what_cannot_be_read_is_refused_and_the_next_line_is_answered(engine: Engine) -> None:
    long = b"x" * (MCP_REQUEST_BYTES_MAX * 2 + 5)
    answers = _served(engine, b"{", long, _line(1, "ping"))
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32700, -32600, None]
    assert answers[2] == {"jsonrpc": "2.0", "id": 1, "result": {}}


def _command(file: Path, lines: bytes, *options: str) -> list[dict[str, Any]]:
    command = [forked.threadline(), "mcp", "--file", str(file), *options]
    done = subprocess.run(command, input=lines, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_command_reads_beside_a_writer_and_masks(tmp_path: Path) -> None:
    file = tmp_path / "threadline.db"
    with threadline.open(str(file)) as shop:
        fill(shop.engine)
        lines = (
            _line(1, "tools/call", name="tell_about_person", arguments={"id": "u1"}) + b"\n" + _line(2, "tools/list")
        )
        shown, listed = _command(file, lines)
    assert "answer" in shown["result"]["structuredContent"]
    assert "ada1@example.com" not in json.dumps(shown)
    assert "confirm" not in {tool["name"] for tool in listed["result"]["tools"]}


def test_the_command_changes_what_is_confirmed_if_it_may_write(tmp_path: Path) -> None:
    file = tmp_path / "threadline.db"
    with threadline.open(str(file)) as shop:
        fill(shop.engine)
    arguments = {"change": "tag", "id": "u1", "add": ["vip"]}
    options = ("--scope", "write", "--scope", "personal")
    shown = _command(file, _line(1, "tools/call", name="change_person", arguments=arguments), *options)[0]
    token = shown["result"]["structuredContent"]["confirm"]
    confirmed = {"token": token, "tool": "change_person", "arguments": arguments}
    done = _command(file, _line(1, "tools/call", name="confirm", arguments=confirmed), *options)[0]
    assert not done["result"]["isError"], done
    with threadline.open(str(file)) as shop:
        assert len(shop.people.list(tag="vip").people) == 1
