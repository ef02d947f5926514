"""The progress of a what-if as server-sent events: a line whenever there is something new, until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from threadline.engine.engine import Engine
from threadline.engine.simulation.jobs import Job
from threadline.surfaces.http.access import Access
from threadline.surfaces.http.routing import Route

PATH = "/v1/whatif/{id}/progress"
LOOK_SECONDS = 0.1
"""How often we look whether there is something new. A thread that waits would be missing to others who read."""
BEAT_LOOKS = 50
"""Looks after which a comment shows that we are still there, though nothing is new."""


class ProgressReport(msgspec.Struct, kw_only=True):
    """How far a what-if has come."""

    id: str
    state: str
    people: int
    events: int
    events_in_all: int | None
    problem: str = ""


class Progress:
    """Streams how far what-ifs are."""

    def __init__(self, engine: Engine, access: Access) -> None:
        self._engine = engine
        self._access = access

    def routes(self) -> Iterator[Route]:
        """The one route."""
        yield Route("GET", PATH, self._stream)

    async def _stream(self, request: Request, names: Mapping[str, str]) -> Response:
        credential = await self._access.token(request, "read")
        running = self._engine.simulations.find(credential.workspace, names["id"])
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_lines(running), 200, headers, "text/event-stream")


async def _lines(running: Job) -> AsyncIterator[bytes]:
    seen, quiet = -1, 0
    while True:
        now, state = running.pages_done, running.state
        if state != "running":
            yield _event(state, running, state)
            return
        if now != seen:
            yield _event("progress", running, state)
            seen, quiet = now, 0
        elif quiet == BEAT_LOOKS:
            yield b": still running\n\n"
            quiet = 0
        quiet += 1
        await asyncio.sleep(LOOK_SECONDS)


def _event(name: str, running: Job, state: str) -> bytes:
    told = ProgressReport(
        id=running.id, state=state, people=running.people, events=running.events, events_in_all=running.events_in_all,
        problem=running.problem,
    )  # fmt: skip
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(told) + b"\n\n"
