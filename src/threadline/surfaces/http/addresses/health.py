"""Whether the server lives, can write, which version it is, and what it has counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.engine import Engine
from threadline.kernel.store import Batch, Key, Put
from threadline.surfaces.http.addresses.gauges import Gauges, gauges
from threadline.surfaces.http.answers.in_flight import InFlight
from threadline.surfaces.http.answers.metrics import MEDIA_TYPE, Metrics
from threadline.surfaces.http.answers.problem import NotNow
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import Access
from threadline.surfaces.http.events.writer import Writer
from threadline.surfaces.version import package_version

READY_SECONDS = 1.0
"""How long one look at the store counts, so that a probe that comes often does not become a load."""


class Status(msgspec.Struct):
    """That all is well."""

    status: str = "ok"
    damaged_events: int | msgspec.UnsetType = msgspec.UNSET
    """How many events are known to be damaged, where there are any; see docs/damage.md."""


class Version(msgspec.Struct):
    """What runs here."""

    name: str
    version: str


class Health:
    """The addresses that operators and their machines ask."""

    def __init__(
        self,
        engine: Engine,
        writer: Writer,
        metrics: Metrics,
        access: Access,
        threads: Executor,
        in_flight: InFlight,
    ) -> None:
        self._engine = engine
        self._in_flight = in_flight
        self._writer = writer
        self._metrics = metrics
        self._access = access
        self._threads = threads
        self._ready_at = float("-inf")
        self._started_at = time.time()

    def routes(self) -> Iterator[Route]:
        """Four addresses; only the metrics need a token, because they name sources."""
        yield Route("GET", "/livez", self._live)
        yield Route("GET", "/readyz", self._ready)
        yield Route("GET", "/version", self._version)
        yield Route("GET", "/metrics", self._page)

    async def _live(self, request: Request, names: Mapping[str, str]) -> Response:
        return _json(Status())

    async def _ready(self, request: Request, names: Mapping[str, str]) -> Response:
        if self._in_flight.is_draining:
            raise NotNow("this server is about to stop; send what comes next to another one")
        if time.monotonic() - self._ready_at > READY_SECONDS:
            # A real commit: whatever keeps it from succeeding raises an error that travels as 503.
            put = Put(Key("health", "ready"), str(self._engine.clock()).encode())
            await self._writer.run(lambda: self._engine.store.commit([Batch(writes=[put])]))
            self._ready_at = time.monotonic()
        loop = asyncio.get_running_loop()
        damaged = len(await loop.run_in_executor(self._threads, self._engine.damage.known))
        return _json(Status(damaged_events=damaged) if damaged else Status())

    async def _version(self, request: Request, names: Mapping[str, str]) -> Response:
        return _json(Version("threadline", package_version()))

    async def _page(self, request: Request, names: Mapping[str, str]) -> Response:
        credential = await self._access.token(request, "admin")
        values: Gauges = {
            "events_waiting": ("Events that wait for a commit or are in one.", float(self._writer.queued)),
            "http_connections": ("Connections of clients.", float(self._in_flight.connections)),
            "http_connections_max": (
                "Connections that are served as usual; to further ones only health.",
                float(self._in_flight.room.connections),
            ),
            "http_request_bytes": ("Bytes of requests in memory.", float(self._in_flight.request_bytes)),
            "http_answer_bytes": (
                "Bytes of large answers that clients have not taken.",
                float(self._in_flight.answer_bytes),
            ),
            "http_streams": ("Answers that are being streamed.", float(self._in_flight.streams)),
            "process_start_time_seconds": ("When this server was made, seconds since 1970.", self._started_at),
        }
        loop = asyncio.get_running_loop()
        values |= await loop.run_in_executor(self._threads, gauges, self._engine)
        # Who runs the server wrote the settings, and sees every workspace; whoever was given a key sees one.
        workspace = None if self._engine.credentials.is_fixed(credential) else credential.workspace
        return Response(self._metrics.text(values, workspace), headers={"content-type": MEDIA_TYPE})


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
