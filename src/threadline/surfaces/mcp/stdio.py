"""The protocol over standard input and output: a message a line, and nothing else on the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import msgspec

from threadline.kernel.limits import MCP_REQUEST_BYTES_MAX
from threadline.surfaces.mcp import protocol
from threadline.surfaces.mcp.tool import Caller


def serve(answering: protocol.Protocol, caller: Callable[[], Caller], incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer messages until the input ends."""
    while line := incoming.readline(MCP_REQUEST_BYTES_MAX + 1):
        if len(line) > MCP_REQUEST_BYTES_MAX:
            while line and not line.endswith(b"\n"):
                line = incoming.readline(MCP_REQUEST_BYTES_MAX)
            failure = protocol.Failure(
                protocol.INVALID_REQUEST, f"a message has at most {MCP_REQUEST_BYTES_MAX:,} bytes"
            )
            answer = protocol.error(failure, None)
        elif not line.strip():
            continue
        else:
            response = answer_line(answering, caller, line)
            if response is None:
                continue
            answer = response
        outgoing.write(msgspec.json.encode(answer) + b"\n")
        outgoing.flush()


def answer_line(answering: protocol.Protocol, caller: Callable[[], Caller], line: bytes) -> dict[str, object] | None:
    """The response to a message; None to a notification."""
    asked: protocol.Request | None = None
    try:
        asked = protocol.request_of(line)
        if asked.id is None:
            return None
        if asked.is_modern:
            protocol.check_envelope(asked)
    except protocol.Failure as failure:
        return protocol.error(failure, asked.id if asked else None)
    return answering.answer(asked, caller())
