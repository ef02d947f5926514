"""One connection: uvicorn's, with bounds on the head of a request, for which it has none."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from threadline.kernel.errors import ThreadlineError
from threadline.surfaces.http.problem import HeadTooLarge, HeadTooSlow, problem

HEAD_BYTES_MAX = 64 * 1_024
"""Of a head that comes in several pieces; what comes at once is bounded by what is read at once."""
HEAD_SECONDS_MAX = 20.0


class Connection(HttpToolsProtocol):
    """Takes requests off a socket, and hangs up on those whose head has no end."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._in_head = False
        self._head_bytes = 0
        self._head_timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request, but not for ever; for those that follow there is a time-out already."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on. What came before a head in the same piece is not counted, nor is the first piece of it."""
        counted = self._in_head
        super().data_received(data)
        if counted and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(HeadTooLarge(f"a request's head may have {HEAD_BYTES_MAX} bytes"))

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._await_head()

    def on_headers_complete(self) -> None:
        """It has ended."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if self._in_head:
            self._refuse(HeadTooSlow(f"a request's head has {HEAD_SECONDS_MAX:g} seconds to come"))
        else:
            # Browsers open connections ahead of need, and would take any word for the answer to what they ask next.
            self.transport.close()

    def _refuse(self, error: ThreadlineError) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        answer = problem(error, "")
        headers = [f"{name}: {value}" for name, value in (*answer.headers.items(), ("connection", "close"))]
        head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", *headers, "", ""]
        self.transport.write("\r\n".join(head).encode("latin-1") + bytes(answer.body))
        self.transport.close()
