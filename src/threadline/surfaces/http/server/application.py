"""The ASGI application: routes, errors as problems, CORS, metrics and the access log around every request."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from threadline.engine.engine import Engine
from threadline.engine.tracing import Arrival, Attributes
from threadline.kernel.errors import EventDamaged, ThreadlineError
from threadline.kernel.limits import (
    PAGES_WAITING_MAX,
    PUBLIC_CALLS,
    QUESTIONS,
    READS_WAITING_MAX,
    SIGN_INS,
    UPKEEP,
    WRITES_WAITING_MAX,
)
from threadline.kernel.time import format_time
from threadline.kernel.tracing import CURRENT, TRACEPARENT
from threadline.settings import Settings
from threadline.surfaces.composition import SharedLimits
from threadline.surfaces.http.addresses.appaction import AppActions
from threadline.surfaces.http.addresses.browser_settings import BrowserSettings
from threadline.surfaces.http.addresses.console import Console
from threadline.surfaces.http.addresses.counts import Counts, counts_from_zero
from threadline.surfaces.http.addresses.following import Following
from threadline.surfaces.http.addresses.graphql import GraphQL
from threadline.surfaces.http.addresses.health import Health
from threadline.surfaces.http.addresses.imports import Imports
from threadline.surfaces.http.addresses.mcp import Mcp
from threadline.surfaces.http.addresses.operations import Operations
from threadline.surfaces.http.addresses.public import PublicRoutes
from threadline.surfaces.http.addresses.sign_in import SignIn
from threadline.surfaces.http.addresses.single_sign_on import SingleSignOn, provider_of
from threadline.surfaces.http.addresses.user_alerts import UserAlerts
from threadline.surfaces.http.answers.browser import refused
from threadline.surfaces.http.answers.in_flight import share_of
from threadline.surfaces.http.answers.problem import problem, server_of, unexpected
from threadline.surfaces.http.answers.routing import PREFLIGHT, Route, Router
from threadline.surfaces.http.callers.access import Access, ClientAddress
from threadline.surfaces.http.callers.web_user import web_users
from threadline.surfaces.http.documents.pages import Pages
from threadline.surfaces.http.events.ingest import CloudEvents, Ingest, Segment
from threadline.surfaces.http.events.rate import RateLimits
from threadline.surfaces.http.events.writer import Writer
from threadline.surfaces.lanes import Bound, LaneName, Lanes

log = logging.getLogger("threadline.http")

UNMATCHED = "unmatched"
API = (b"/v1/", b"/ux/")
"""How addresses begin whose errors are documents for programs, whoever asks."""
LOOK_THREADS = 2
"""For what is short and everybody waits for: keys and counts that the store is asked for."""
_PROBES = frozenset({"/livez", "/readyz", "/metrics"})
"""They come every few seconds and would fill a store of traces."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})


class Application:
    """Serves one engine. It closes neither the engine nor the store: who opened them does."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        log_line: Callable[[bytes], None] | None = None,
        limits: SharedLimits | None = None,
        after_request: Callable[[], None] = lambda: None,
        counts: Counts | None = None,
    ) -> None:
        self.engine = engine
        self._after_request = after_request
        self._limits = limits
        self._counts = counts or counts_from_zero(settings, engine.clock)
        self.metrics = self._counts.metrics
        self._in_flight = self._counts.in_flight
        self.metrics.failures_of_engines.append(engine.recorder.policy_failures)
        self.metrics.counts_of_engines.append(engine.recorder.counts)
        self.writer = Writer(
            engine,
            commit_events_max=settings.commit_events_max,
            queue_events_max=settings.queue_events_max,
            observe=self.metrics.append.observe,
        )
        self.lanes = Lanes(_bounds(settings), self._in_flight.refuse)
        # Of their own, so that no key waits to be looked up behind anything else.
        self._looks = ThreadPoolExecutor(LOOK_THREADS, "threadline-look")
        self._limiting = ThreadPoolExecutor(1, "threadline-limit")
        self._decoding = ThreadPoolExecutor(1, "threadline-decode")
        # One thread: what large requests take of the interpreter, all of them together, is one share beside the others.
        self._decoding_large = ThreadPoolExecutor(1, "threadline-decode-large")
        self._client_address = ClientAddress(settings.forwarded_allow_ips)
        self._log_line = (log_line or _to_stderr) if settings.access_log else None
        self.router = Router(self._routes(settings))

    def _routes(self, settings: Settings) -> Iterable[Route]:
        access = Access(self.engine.credentials, self._looks)
        counts = self._counts
        limits = RateLimits(
            self.engine,
            self.writer,
            counts.by_source,
            counts.by_address,
            counts.by_person,
            self._limits,
            thread=self._limiting,
            tokens=settings.person_limit_tokens,
        )
        ingest = Ingest(self.engine, self.writer, self.metrics, limits, self._decoding, self._decoding_large)
        yield from Segment(ingest, access).routes()
        yield from CloudEvents(ingest, access).routes()
        yield from BrowserSettings(access).routes()
        users = web_users(settings, self.engine.clock)
        yield from AppActions(ingest, settings, users, counts.visitors, self.lanes, self._limits).routes()
        yield from GraphQL(self.engine, settings, access, users, self.lanes).routes()
        yield from Mcp(self.engine, settings, access, self.metrics, self.lanes).routes()
        yield from UserAlerts(self.engine, settings.workspace, users, self.lanes).routes()
        yield from Operations(self.engine, access, limits, self.metrics, self.lanes).routes()
        yield from PublicRoutes(self.engine, access, self.lanes, counts.public).routes()
        yield from Following(self.engine, access, self.lanes, counts.in_flight).routes()
        yield from Health(self.engine, self.writer, self.metrics, access, self._looks, counts.in_flight).routes()
        yield from Pages(self.engine.catalogue).routes()
        provider = provider_of(settings, self.engine.clock)
        sign_in = SignIn(
            self.engine, settings.workspace, self.lanes, self._looks, counts, has_provider=provider is not None
        )
        yield from sign_in.routes()
        if provider is not None:
            yield from SingleSignOn(self.engine, settings.workspace, provider, sign_in).routes()
        console = Console(self.engine, sign_in, self.lanes, counts)
        yield from Imports(console, self.engine, counts.uploads, self.lanes).routes()
        yield from console.routes()

    async def close(self) -> None:
        """Wait for what is being written and read; an import stops after the batch that it is at."""
        await asyncio.to_thread(self._counts.uploads.stop)
        await self.writer.close()
        for threads in (self.lanes, self._looks, self._limiting, self._decoding, self._decoding_large):
            threads.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the server."""
        if scope["type"] != "http":
            await self._besides(scope, receive, send)
            return
        began = time.perf_counter()
        arrival = self._arrive(scope)
        if scope.get("client"):
            scope["client"] = (self._client_address.resolve(scope), 0)
        request = Request(scope, receive)
        path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
        route: Route | None = None
        try:
            route, names = self.router.find(scope["method"], path)
            if scope["method"] == "OPTIONS" and route.method != "OPTIONS":
                response = self._options(route)
            else:
                response = await route.handler(request, names)
        except ThreadlineError as error:
            if isinstance(error, EventDamaged):
                # Not waited for: it is written to the store, once for each event.
                self._looks.submit(self.engine.damage.note, error)
            if error.is_inside:
                log.warning("%s %s: %s", scope["method"], route.path if route else UNMATCHED, error)
            response = _refusal(error, request, path)
        except ClientDisconnect:
            return
        except Exception:
            log.exception("%s %s failed", scope["method"], route.path if route else UNMATCHED)
            response = _refusal(unexpected(), request, path)
        if lacking := self._lacking(scope, response):
            response = problem(self._in_flight.refuse(lacking), _readable(path), server_of(request))
        if route is not None and route.open_to_browsers:
            response.headers["access-control-allow-origin"] = "*"
            response.headers["access-control-expose-headers"] = "etag, retry-after, x-ratelimit-reset"
        self._note(scope["method"], route.path if route else UNMATCHED, response.status_code, began, arrival)
        is_stream = isinstance(response, StreamingResponse)
        self._in_flight.streams += is_stream
        try:
            await response(scope, receive, _without_body(send) if scope["method"] == "HEAD" else send)
        finally:
            self._in_flight.streams -= is_stream
        self._after_request()

    async def _besides(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What is no request: the life of the server, or a web socket, of which there are none here."""
        if scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1000})
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _lacking(self, scope: Scope, response: Response) -> str:
        """What there is no room for, if anything, until the client has its answer. The last answer says that it is."""
        share = share_of(scope)
        if self._in_flight.is_draining or (share is not None and share.holder.is_arriving()):
            response.headers["connection"] = "close"
        if isinstance(response, StreamingResponse):
            return "streams" if self._in_flight.streams >= self._in_flight.streams_max else ""
        return "" if share is None or share.hold_answer(len(response.body)) else "answers"

    def _options(self, route: Route) -> Response:
        headers = {"allow": self.router.methods(route.path)}
        if route.open_to_browsers:
            headers.update(PREFLIGHT)
        return Response(status_code=204, headers=headers)

    def _arrive(self, scope: Scope) -> Arrival | None:
        tracing = self.engine.recorder.tracing
        if tracing is None or scope["path"] in _PROBES:
            return None
        arrival = tracing.arrive(Headers(scope=scope).get(TRACEPARENT, ""))
        CURRENT.set(arrival.span)
        return arrival

    def _note(self, method: str, route: str, status: int, began: float, arrival: Arrival | None) -> None:
        seconds = time.perf_counter() - began
        method = method if method in _METHODS else "other"  # a client may make methods up, and each would be a series
        self.metrics.requests.add((method, route, str(status)))
        self.metrics.request_seconds.observe(seconds, (route,))
        if arrival is not None and (tracing := self.engine.recorder.tracing) is not None:
            # The route and not the path, which has people's ids.
            about: Attributes = {
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": status,
            }
            tracing.served(arrival, f"{method} {route}", about, error=str(status) if status >= 500 else "")
        if self._log_line is not None:
            at = format_time(self.engine.clock())
            line = {"at": at, "method": method, "route": route, "status": status, "ms": round(seconds * 1e3, 2)}
            # That nobody can be told of a request any more, as on a full disk, is no reason not to answer it.
            with suppress(OSError, ValueError):
                self._log_line(msgspec.json.encode(line) + b"\n")


def _bounds(settings: Settings) -> dict[LaneName, Bound]:
    """How much of a server each class of work has."""
    return {
        "read": Bound(settings.read_threads, READS_WAITING_MAX),
        "page": Bound(settings.read_threads, PAGES_WAITING_MAX),
        "question": Bound(*QUESTIONS),
        "write": Bound(settings.read_threads, WRITES_WAITING_MAX),
        "upkeep": Bound(*UPKEEP),
        "public": Bound(*PUBLIC_CALLS),
        "sign_in": Bound(*SIGN_INS),
    }


def _refusal(error: ThreadlineError, request: Request, path: bytes) -> Response:
    """An error as a page to who opens an address in a browser, as a document to all others and at the API."""
    is_opened = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if is_opened and not path.startswith(API):
        return refused(error, request)
    return problem(error, _readable(path), server_of(request))


def _readable(path: bytes) -> str:
    return path.decode("ascii", "backslashreplace")[:500]


def _without_body(send: Send) -> Send:
    async def headers_only(message: Message) -> None:
        if message["type"] == "http.response.body":
            body: MutableMapping[str, Any] = {**message, "body": b""}
            message = body
        await send(message)

    return headers_only


def _to_stderr(line: bytes) -> None:
    sys.stderr.write(line.decode())
