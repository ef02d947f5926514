"""Tokens that let a change happen which was shown before: for one caller, these very arguments, a short time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import MCP_CONFIRMATION_SECONDS
from threadline.kernel.time import SECOND
from threadline.surfaces.mcp.tool import Caller

_PURPOSE = "mcp confirmation"
_SHOW_AGAIN = "Call the tool again with the arguments as they are to be now; its answer has a new token."


def token(engine: Engine, caller: Caller, tool: str, arguments: Mapping[str, Any]) -> str:
    """The token for what a tool has shown."""
    expires_at = engine.clock() + MCP_CONFIRMATION_SECONDS * SECOND
    return engine.signer.sign(_PURPOSE, caller.workspace, _digest(caller, tool, arguments), expires_at)


def check(engine: Engine, caller: Caller, tool: str, arguments: Mapping[str, Any], given: str) -> str:
    """The name under which a confirmed change is carried out once. Raises `InvalidValue` for any other token."""
    signed = engine.signer.read(_PURPOSE, given)
    if signed is None or signed.workspace != caller.workspace:
        raise InvalidValue("token: this server has not given it", param="token", hint=_SHOW_AGAIN)
    digest, expires_at = signed.values
    if digest != _digest(caller, tool, arguments):
        raise InvalidValue(
            "token: it is for another tool, other arguments or another caller", param="token", hint=_SHOW_AGAIN
        )
    if engine.clock() >= int(expires_at):
        raise InvalidValue(
            f"token: it was good for {MCP_CONFIRMATION_SECONDS} seconds, which are over", param="token",
            hint=_SHOW_AGAIN,
        )  # fmt: skip
    return f"mcp-{hashlib.sha256(given.encode()).hexdigest()[:40]}"


def _digest(caller: Caller, tool: str, arguments: Mapping[str, Any]) -> str:
    meant = {name: value for name, value in arguments.items() if value is not None}
    text = msgspec.json.encode([caller.name, tool, meant], order="deterministic")
    return hashlib.sha256(text).hexdigest()
