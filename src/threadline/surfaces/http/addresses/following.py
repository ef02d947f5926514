"""Results that change by themselves, as server-sent events: one whenever the result differs, until it is final."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.operation import Operation
from threadline.surfaces.http.addresses.operations import many_valued, read_query
from threadline.surfaces.http.answers.in_flight import InFlight
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import Access
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.operation_calls import convert, run, shown

LOOK_SECONDS = 0.5
"""How often the operation is run again."""
BEAT_LOOKS = 20
"""Looks after which a comment shows that we are still there, though nothing is new."""
LOOKS_MAX = 600
"""Looks after which the stream ends without `ended`: the client connects again, and a job that waits for days keeps no
connection for days."""


class Following:
    """A stream beside each operation whose result changes until it is final, at its path and ``/events``."""

    def __init__(self, engine: Engine, access: Access, lanes: Lanes, in_flight: InFlight) -> None:
        self._engine = engine
        self._in_flight = in_flight
        self._access = access
        self._lanes = lanes

    def routes(self) -> Iterator[Route]:
        """One route for each of these operations."""
        for operation in shown(self._engine.catalogue.operations, "http").values():
            if operation.ended is not None:
                yield Route("GET", f"{operation.path}/events", partial(self._stream, operation, operation.ended))

    async def _stream(
        self, operation: Operation, ended: Callable[[Any], bool], request: Request, names: Mapping[str, str]
    ) -> Response:
        credential = await self._access.token(request, operation.scope)
        values = {**read_query(request.scope["query_string"], many_valued(operation.params)), **names}
        params = convert(operation, values, strict=False)

        def look() -> Any:
            context = Context(self._engine, credential.workspace, self._engine.now(), credential.name, over_wire=True)
            return run(operation, context, params)

        async def result() -> Any:
            return await self._lanes.run(operation.work(params), look)

        first = await result()  # before the answer has begun: what is wrong becomes a problem, and no broken stream
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_lines(first, result, ended, self._in_flight), 200, headers, "text/event-stream")


async def _lines(
    now: Any, result: Callable[[], Awaitable[Any]], ended: Callable[[Any], bool], in_flight: InFlight
) -> AsyncIterator[bytes]:
    seen, quiet = b"", 0
    for _ in range(LOOKS_MAX):
        shown = msgspec.json.encode(now)
        if ended(now):
            yield b"event: ended\ndata: " + shown + b"\n\n"
            return
        quiet += 1
        if shown != seen:
            yield b"event: progress\ndata: " + shown + b"\n\n"
            seen, quiet = shown, 0
        elif quiet % BEAT_LOOKS == 0:
            yield b": nothing new\n\n"
        await asyncio.sleep(LOOK_SECONDS)
        if in_flight.is_ending:
            return  # in good order: the client connects again, to a server that goes on
        try:
            now = await result()
        except ThreadlineError:  # such as a store that is away: the client connects again, and is told of it then
            return


def following_paths(operations: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Their part of the OpenAPI document, made of the parts of the operations themselves, by path."""
    return {
        f"{path}/events": {
            "get": {
                **{name: described[name] for name in ("tags", "security")},
                # A stream has one form only; `format` is that of an answer.
                "parameters": [parameter for parameter in described["parameters"] if parameter["name"] != "format"],
                "operationId": f"{described['operationId']}_events",
                "summary": f"Follow by server-sent events: {described['summary'][0].lower()}{described['summary'][1:]}",
                "description": "Events `progress` whenever the result is another one, then `ended`; each with the "
                "result as JSON. It ends after some minutes in any case: connect again.",
                "responses": {
                    "200": {"description": "Events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
                },
                "x-without": ("409", "413", "415", "429"),
            }
        }
        for path, described in operations.items()
    }
