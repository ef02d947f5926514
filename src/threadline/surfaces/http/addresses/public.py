"""Renders public routes: no credential, or a token with a scope, a bounded body, and headers of a page of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.engine import Engine
from threadline.kernel.public_route import PublicRequest, PublicRoute
from threadline.surfaces.http.answers.in_flight import read_body
from threadline.surfaces.http.answers.problem import RateLimited
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import Access, client_host, limited_name
from threadline.surfaces.http.events.rate import Buckets
from threadline.surfaces.lanes import Lanes

PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
"""Of every page. No script runs, nothing is loaded, and no other page learns the address."""
_HEADERS = {
    **PAGE_HEADERS,
    "content-security-policy": PAGE_HEADERS["content-security-policy"].replace(
        "form-action 'none'", "form-action 'self'"
    ),
    "cache-control": "no-store",
}


class PublicLimits:
    """How often an address has asked for public routes. Lives on the server's event loop."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._by_rate: dict[int, Buckets] = {}

    def charge(self, declared: PublicRoute, host: str, path: str) -> None:
        """Count a request. Raises `RateLimited` for one too many; then it was not counted."""
        address = limited_name(host)
        limits = [(self._buckets(declared.per_minute), f"{declared.name} {address}")]
        if declared.same_per_minute:
            limits.append((self._buckets(declared.same_per_minute), f"{path} {address}"))
        if wait := max(buckets.wait(name) for buckets, name in limits):
            raise RateLimited(f"too many requests from here; come again in {wait} s", wait)
        for buckets, name in limits:
            buckets.charge(name, 1)

    def _buckets(self, per_minute: int) -> Buckets:
        if per_minute not in self._by_rate:
            self._by_rate[per_minute] = Buckets(per_minute / 60, per_minute, self._seconds)
        return self._by_rate[per_minute]


class PublicRoutes:
    """All declared public routes. They run beside the event loop, like operations."""

    def __init__(self, engine: Engine, access: Access, lanes: Lanes, limits: PublicLimits) -> None:
        self._engine = engine
        self._access = access
        self._limits = limits
        self._lanes = lanes

    def routes(self) -> Iterator[Route]:
        """One for each declaration."""
        for declared in self._engine.catalogue.public_routes:
            yield Route(declared.method, declared.path, partial(self._answer, declared))

    async def _answer(self, declared: PublicRoute, request: Request, names: Mapping[str, str]) -> Response:
        self._limits.charge(declared, client_host(request), request.url.path)
        token = await self._access.token(request, declared.scope) if declared.scope else None
        body = await read_body(request, declared.body_bytes_max) if declared.method == "POST" else b""
        query, now = dict(request.query_params), self._engine.now()
        workspace = "default" if token is None else token.workspace
        asked = PublicRequest(names, query, dict(request.headers), body, now, request.method, workspace)
        work = partial(declared.answer, self._engine, asked)
        with (
            self._engine.recorder.readers.reading()
            if declared.method == "GET" and not declared.records
            else nullcontext()
        ):
            answer = await self._lanes.run("public", work)
        headers = {**_HEADERS, "content-type": answer.media_type, **(answer.headers or {})}
        return Response(answer.body, answer.status, headers)


def public_paths(routes: Iterable[PublicRoute]) -> dict[str, dict[str, Any]]:
    """Their part of the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    anything: dict[str, Any] = {"*/*": {"schema": {}}}
    for route in routes:
        posted = route.method == "POST"
        names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
        described: dict[str, Any] = {
            "operationId": route.name,
            "summary": route.summary,
            "tags": ["public"],
            "description": f"Needs the scope `{route.scope}`." if route.scope else "Needs no credential.",
            "security": [{"token": []}] if route.scope else [],
            "parameters": [
                {
                    "name": name,
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string", "minLength": 1},
                    "example": name.upper(),
                }
                for name in names
            ],
            "responses": {
                "200": {"description": "What the route answers.", "content": anything},
                "404": {"description": "A page for whoever follows a link that leads nowhere.", "content": anything},
            },
            "x-without": () if posted else ("413", "415"),
        }
        if posted:
            described["requestBody"] = {"required": False, "content": {"*/*": {"schema": {}, "example": ""}}}
        paths.setdefault(route.path, {})[route.method.lower()] = described
    return paths
