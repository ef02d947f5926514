"""A server that is asked over HTTP, with the operations of a store in this process: now, or to be awaited."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from types import TracebackType
from typing import Any

from threadline.kernel.extra import from_source

try:
    import httpx
except ImportError as error:  # pragma: no cover — the tests have it
    raise ImportError(f"the client needs httpx; {from_source('client')}") from error

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.event import Receipt
from threadline.surfaces.operation_calls import STALE_HEADER
from threadline.surfaces.python import exchange
from threadline.surfaces.python.call import Answer, Call, warn_if_stale
from threadline.surfaces.python.exchange import Lost, Request, Response
from threadline.surfaces.python.operations import AsyncOperations, Operations
from threadline.surfaces.python.recording import AsyncRecording, Recording

ATTEMPTS = 5
TIMEOUT_SECONDS = 30.0
"""Of one attempt."""


class Client(Operations, Recording):
    """A server, seen through a token: `Client("http://127.0.0.1:8787", token="tl_...")`. Thread-safe.

    ``url`` and ``token`` are by default THREADLINE_URL and THREADLINE_TOKEN. Whatever the server cannot do now (429,
    503) or did not answer is sent again, up to ``attempts`` times, with pauses that grow and as the server asks. What
    is changed twice by being sent twice is sent again only if it cannot have arrived. Errors are those of a store in
    this process.
    """

    def __init__(
        self, url: str = "", token: str = "", *, attempts: int = ATTEMPTS, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        super().__init__()
        self.url = _url(url)
        self._attempts = attempts
        self._http = httpx.Client(headers=_headers(token), timeout=timeout)

    def record(self, events: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record events and answer one receipt each, in order: what is ``accepted`` is durable when this returns.

        A mapping has the fields of docs/events.md. An event without a ``key`` gets one, under which it is sent again.
        """
        return [receipt for batch in exchange.batches(events) for receipt in self.call(exchange.RECORD, batch).receipts]

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, call: Call[Answer], values: Mapping[str, Any], /) -> Answer:
        """Carry out one operation on the server."""
        request = exchange.request_of(call, values)
        for attempt in count(1):
            outcome = self._send(request)
            pause = exchange.pause(call, attempt, self._attempts, outcome)
            if pause is None:
                answer = _answer(call, outcome, self.url)
                warn_if_stale(call, _stale(outcome))
                return answer
            time.sleep(pause)
        raise AssertionError

    def pieces(self, call: Call[bytes], values: Mapping[str, Any], /) -> Iterator[bytes]:
        """The answer to a call that answers with a stream, in pieces as they come. It is not sent again."""
        request = exchange.request_of(call, values)
        try:
            with self._http.stream(request.method, self.url + request.path, headers=request.headers) as response:
                if response.status_code >= 300:
                    raise exchange.error_of(Response(response.status_code, response.headers, response.read()))
                yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise exchange.lost(self.url, _lost(error)) from None

    def _send(self, request: Request) -> Response | Lost:
        url = self.url + request.path
        try:
            response = self._http.request(request.method, url, content=request.body, headers=request.headers)
        except httpx.TransportError as error:
            return _lost(error)
        return Response(response.status_code, response.headers, response.content)


class AsyncClient(AsyncOperations, AsyncRecording):
    """The same for asyncio: every operation is awaited. See `Client`."""

    def __init__(
        self, url: str = "", token: str = "", *, attempts: int = ATTEMPTS, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        super().__init__()
        self.url = _url(url)
        self._attempts = attempts
        self._http = httpx.AsyncClient(headers=_headers(token), timeout=timeout)

    async def record(self, events: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record events; see `Client.record`."""
        answers = [await self.call(exchange.RECORD, batch) for batch in exchange.batches(events)]
        return [receipt for answer in answers for receipt in answer.receipts]

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def call(self, call: Call[Answer], values: Mapping[str, Any], /) -> Answer:
        """Carry out one operation on the server."""
        request = exchange.request_of(call, values)
        for attempt in count(1):
            outcome = await self._send(request)
            pause = exchange.pause(call, attempt, self._attempts, outcome)
            if pause is None:
                answer = _answer(call, outcome, self.url)
                warn_if_stale(call, _stale(outcome), frames=3)
                return answer
            await asyncio.sleep(pause)
        raise AssertionError

    async def _send(self, request: Request) -> Response | Lost:
        url = self.url + request.path
        try:
            response = await self._http.request(request.method, url, content=request.body, headers=request.headers)
        except httpx.TransportError as error:
            return _lost(error)
        return Response(response.status_code, response.headers, response.content)


def _url(url: str) -> str:
    chosen = (url or os.environ.get("THREADLINE_URL", "")).rstrip("/")
    if not chosen.startswith(("http://", "https://")):
        raise InvalidSetting(f"url: {chosen!r} is not the address of a server, such as http://127.0.0.1:8787")
    return chosen


def _headers(token: str) -> dict[str, str]:
    chosen = token or os.environ.get("THREADLINE_TOKEN", "")
    return {"authorization": f"Bearer {chosen}"} if chosen else {}


def _lost(error: httpx.TransportError) -> Lost:
    never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    return Lost(str(error) or type(error).__name__, sent=not never_sent)


def _stale(outcome: Response | Lost) -> str:
    return "" if isinstance(outcome, Lost) else outcome.headers.get(STALE_HEADER, "")


def _answer(call: Call[Answer], outcome: Response | Lost, url: str) -> Answer:
    if isinstance(outcome, Lost):
        raise exchange.lost(url, outcome)
    return exchange.answer_of(call, outcome)
