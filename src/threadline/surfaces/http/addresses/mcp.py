"""The address of the Model Context Protocol: streamable HTTP, both eras, one JSON answer for each message."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.engine import Engine
from threadline.kernel.errors import Forbidden
from threadline.kernel.limits import MCP_CALLS_BURST, MCP_CALLS_PER_SECOND, MCP_REQUEST_BYTES_MAX
from threadline.settings import Settings
from threadline.surfaces.http.answers.in_flight import read_body
from threadline.surfaces.http.answers.metrics import Metrics
from threadline.surfaces.http.answers.problem import RateLimited, UnsupportedFormat
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import Access
from threadline.surfaces.http.events.rate import Buckets
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.mcp import protocol
from threadline.surfaces.mcp.tool import Caller
from threadline.surfaces.version import package_version

if TYPE_CHECKING:
    from threadline.engine.credentials import Credential

PATH = "/mcp"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUS = {
    protocol.PARSE_ERROR: 400,
    protocol.INVALID_REQUEST: 400,
    protocol.INVALID_PARAMS: 400,
    protocol.HEADER_MISMATCH: 400,
    protocol.UNSUPPORTED_VERSION: 400,
    protocol.METHOD_NOT_FOUND: 404,
}
"""Of errors since 2026-07-28; before that an error of JSON-RPC travels under 200."""
_ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name")


class Mcp:
    """Answers the messages of agents beside the event loop."""

    def __init__(self, engine: Engine, settings: Settings, access: Access, metrics: Metrics, lanes: Lanes) -> None:
        self._protocol = protocol.Protocol(engine, package_version())
        self._metrics = metrics
        self._access = access
        self._lanes = lanes
        self._limits = Buckets(MCP_CALLS_PER_SECOND, MCP_CALLS_BURST)
        self._hosts = _LOOPBACK | {urlsplit(settings.public_url).hostname or "localhost"}

    def routes(self) -> Iterator[Route]:
        """One address, POST only: there is no stream to open and no session to end."""
        yield Route("POST", PATH, self.post)

    async def post(self, request: Request, names: Mapping[str, str]) -> Response:
        """Answer a message."""
        self._check_origin(request)
        credential = await self._access.token(request, None)
        caller = Caller(credential.workspace, credential.name, credential.scopes)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise UnsupportedFormat("send JSON: Content-Type: application/json")
        body = await read_body(request, MCP_REQUEST_BYTES_MAX, known=True)
        asked: protocol.Request | None = None
        try:
            asked = protocol.request_of(body)
            is_modern = _check_headers(request, asked)
        except protocol.Failure as failure:
            return _response(protocol.error(failure, asked.id if asked else None), _STATUS.get(failure.code, 400))
        if asked.id is None:
            return Response(status_code=202)
        if asked.method == "tools/call":
            self._charge(credential)
        answer = await self._lanes.run("page", partial(self._protocol.answer, asked, caller))
        if asked.method == "tools/call":
            self._metrics.mcp_calls.add(self._protocol.counted(asked, answer))
        status = _STATUS.get(answer["error"]["code"], 200) if is_modern and "error" in answer else 200
        return _response(answer, status)

    def _check_origin(self, request: Request) -> None:
        # A page of another origin must not reach a server on somebody's own machine, by whatever name it found it.
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).hostname not in self._hosts:
            raise Forbidden(
                "pages of this origin may not send here", hint="Set public_url to the address that people open."
            )

    def _charge(self, credential: Credential) -> None:
        if wait := self._limits.wait(credential.hash):
            raise RateLimited(f"this credential calls more than {MCP_CALLS_PER_SECOND} tools a second", wait)
        self._limits.charge(credential.hash, 1)


def _check_headers(request: Request, asked: protocol.Request) -> bool:
    """Whether the message is of the stateless era. Raises `Failure` for headers that do not belong to it."""
    version, method, name = (_header(request, header) for header in _ROUTING)
    if not asked.is_modern and (version is None or version in protocol.LEGACY):
        return False
    if asked.id is None and not asked.is_modern:
        if version not in protocol.MODERN:
            raise _unsupported(version or "")
        return True
    for header in _ROUTING:
        if len(request.headers.getlist(header)) > 1:
            raise protocol.Failure(protocol.HEADER_MISMATCH, f"the header {header} stands there twice")
    if not asked.is_modern and version not in protocol.MODERN:
        raise _unsupported(version or "")
    meta = asked.params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    if protocol.VERSION_KEY not in meta or protocol.CAPABILITIES_KEY not in meta:
        protocol.check_envelope(asked)
    if version != meta[protocol.VERSION_KEY]:
        raise protocol.Failure(
            protocol.HEADER_MISMATCH, "the header MCP-Protocol-Version is not the version that `_meta` says"
        )
    if method != asked.method:
        raise protocol.Failure(protocol.HEADER_MISMATCH, "the header Mcp-Method is not the method of the message")
    named = asked.params.get(_NAMES.get(asked.method, ""))
    if named is not None and _decoded(name) != named:
        raise protocol.Failure(protocol.HEADER_MISMATCH, "the header Mcp-Name is not what the message names")
    protocol.check_envelope(asked)
    return True


def _header(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    return None if value is None else value.strip(" \t")


def _unsupported(version: str) -> protocol.Failure:
    data = {"supported": [*protocol.MODERN, *protocol.LEGACY], "requested": version[:64]}
    return protocol.Failure(protocol.UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _decoded(header: str | None) -> str | None:
    """A header, which has text beyond printable ASCII in base64: ``=?base64?…?=``."""
    if header is None or not (header.startswith("=?base64?") and header.endswith("?=")):
        return header
    try:
        return base64.b64decode(header[9:-2], validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _response(answer: Mapping[str, object], status: int) -> Response:
    return Response(msgspec.json.encode(answer), status, {"cache-control": "no-store"}, "application/json")
