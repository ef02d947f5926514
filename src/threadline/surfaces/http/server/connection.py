"""uvicorn with bounds: of heads and bodies, of answers that nobody takes; with a gentle close, and a gentle stop."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import time
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from types import FrameType
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from threadline.kernel.errors import ThreadlineError
from threadline.settings import Settings
from threadline.surfaces.http.answers.in_flight import SHARE, InFlight
from threadline.surfaces.http.answers.problem import (
    BodyTooSlow,
    HeadTooLarge,
    HeadTooSlow,
    MalformedRequest,
    NotNow,
    forwarded_scheme,
    problem,
)
from threadline.surfaces.http.server import connection_limits as limits
from threadline.surfaces.http.server.connection_limits import accept_the_last
from threadline.surfaces.http.server.reloading import Reloadable


class _Parser(httptools.HttpRequestParser):
    """Reads a request that offers to go on in another protocol as if it offered nothing (RFC 9110, 7.8).

    By itself httptools takes what comes after such a head for the other protocol, and the body is lost. Java's client
    and ``curl --http2`` offer HTTP/2 with every request that has no TLS.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._connection = connection
        with suppress(AttributeError):  # before httptools 0.6.3
            self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def feed_data(self, data: Any) -> None:
        """Parse what came; whoever offers another protocol has their head parsed again without the offer."""
        parser, rest = self, memoryview(data)
        while True:
            try:
                httptools.HttpRequestParser.feed_data(parser, rest)
                return
            except httptools.HttpParserUpgrade as offered:
                if parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserInvalidMethodError("this is no proxy") from None
                # Another parser: after a head of HTTP/1.0, or one with `Connection: close`, this one reads no more.
                head, rest = self._connection.head_without_offer(), rest[offered.args[0] :]
                parser = self._connection.parser = _Parser(self._connection)
                httptools.HttpRequestParser.feed_data(parser, head)


class _Answers:
    """What answers are written to: a connection's transport, closed so that the client sees all of the answer."""

    def __init__(self, transport: Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close


class Connection(HttpToolsProtocol):
    """Takes requests off a socket, and hangs up on those that have no end: uvicorn has no bounds for it."""

    def __init__(self, *given: Any, in_flight: InFlight | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.parser = _Parser(self)
        self._whole = in_flight or InFlight()
        self._share = self._whole.share(self)
        self._in_head = self._in_body = self._is_extra = False
        self._former_headers: list[tuple[bytes, bytes]] = []
        """Of the newest whole head: who comes by this connection has come through the same proxies before."""
        self._head_bytes = self._last_bytes = 0
        self._discarding: int | None = None
        """Bytes that were dropped since the answer to a request that has not ended; None before."""
        self._fault: ThreadlineError = MalformedRequest("this is not an HTTP/1.1 request")
        self._deadline = math.inf
        """When what is waited for must have come, by the loop's clock; infinite while the application is at work."""
        self._timer: TimerHandle | None = None
        self._looks_at = math.inf
        self._taking: TimerHandle | None = None  # runs out when the client has not taken what was written

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request, but not for ever; for those that follow there is a time-out already."""
        super().connection_made(transport)
        self._answers = _Answers(transport, self._finish)
        self._is_extra = self._whole.is_crowded()
        if self._whole.connections > self._whole.room.connections + self._whole.room.extra:
            self._refuse(self._whole.refuse("connections"))
            self._close()
        else:
            self._wait(limits.EXTRA_SECONDS_MAX if self._is_extra else limits.HEAD_SECONDS_MAX)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        for timer in (self._timer, self._taking):
            if timer is not None:
                timer.cancel()
        self._share.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on. What came before a head in the same piece is not counted as head, nor is the first piece of it."""
        if self._discarding is not None:
            self._discarding += len(data)
            if self._discarding > limits.DISCARD_BYTES_MAX:
                self._close()
            return
        counted, self._last_bytes = self._in_head, len(data)
        super().data_received(data)
        if self._discarding is not None or self.transport.is_closing():
            return
        if counted and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > limits.HEAD_BYTES_MAX:
                self._refuse(HeadTooLarge(f"a request's head may have {limits.HEAD_BYTES_MAX} bytes"))
                return
        self._share.add(len(data))

    def pause_writing(self) -> None:
        """More is written than the client takes: it has a while for it."""
        super().pause_writing()
        if self._taking is None:
            self._taking = self.loop.call_later(self._take_seconds(), self.abort)

    def resume_writing(self) -> None:
        """The client has taken nearly all of it."""
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None
        self._share.taken()
        if self.cycle is None or self.cycle.response_complete:
            self._share.rest()
        super().resume_writing()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self.scope["state"][SHARE] = self._share
        self._in_head, self._head_bytes = True, 0
        if self._deadline == math.inf:
            self._wait(limits.HEAD_SECONDS_MAX)

    def head_without_offer(self) -> bytes:
        """The head that has been read, but for the offer of another protocol."""
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of the head. Those that follow a body of chunks are dropped: they come too late to be believed."""
        if not self._in_head:
            return
        if len(self.headers) >= limits.HEADERS_MAX:
            self._fault = HeadTooLarge(f"a request's head may have {limits.HEADERS_MAX} headers")
            raise httptools.HttpParserError(str(self._fault))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """It has ended, and a body begins, which may be empty."""
        if self.parser.should_upgrade():
            return
        self._check_head()
        self._in_head, self._former_headers = False, self.headers
        super().on_headers_complete()
        self.cycle.transport = self._answers  # type: ignore[assignment]
        self._in_body = True
        if self._is_extra:
            self.cycle.keep_alive = False
            if self.scope["raw_path"] not in limits.HEALTH:
                self._refuse(self._whole.refuse("connections"))
                return
        self._wait(limits.BODY_SECONDS_MAX)

    def on_message_complete(self) -> None:
        """The body has ended."""
        if self.parser.should_upgrade():
            return
        self._share.begin()
        self._in_body, self._deadline = False, math.inf
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Tell what is no HTTP so, as a problem like any other."""
        self._refuse(self._fault)

    def _check_head(self) -> None:
        """Refuse what RFC 9112, 3.2 and 6.1, has refused: a proxy in front may go by another host, or another end."""
        hosts = [value for name, value in self.headers if name == b"host"]
        encodings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        is_named = len(hosts) == 1 and limits.HOST.fullmatch(hosts[0])
        if not is_named and (hosts or self.parser.get_http_version() != "1.0"):
            self._fault = MalformedRequest("a request of HTTP/1.1 has one header Host, which names a host")
        elif encodings in ([], [b"chunked"]):
            return
        else:
            self._fault = MalformedRequest("the one encoding of a transfer that is read here is chunked")
        raise httptools.HttpParserError(str(self._fault))

    def _wait(self, seconds: float) -> None:
        # A timer that looks early enough is left alone: one for each request would cost more than reading its head.
        self._deadline = self.loop.time() + seconds
        if self._looks_at > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._look_later()

    def _look_later(self) -> None:
        self._looks_at = self._deadline
        self._timer = None if self._deadline == math.inf else self.loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        if self.loop.time() < self._deadline:
            self._look_later()
            return
        self._deadline = self._looks_at = math.inf
        self._timer = None
        self._give_up()

    def _give_up(self) -> None:
        if self._discarding is not None:
            self._close()
        elif self._in_head:
            self._refuse(HeadTooSlow(f"a request's head has {limits.HEAD_SECONDS_MAX:g} seconds to come"))
        elif self._in_body and self.pipeline:
            self._wait(limits.BODY_SECONDS_MAX)  # nothing more of it is read before what came earlier is answered
        elif self._in_body and not self.cycle.response_started:
            self._refuse(BodyTooSlow(f"a request's body has {limits.BODY_SECONDS_MAX:g} seconds to come"))
        else:
            # Browsers open connections ahead of need, and would take any word for the answer to what they ask next.
            self._close()

    def is_arriving(self) -> bool:
        """Whether part of a request is here that nobody works on, and an error would be the answer to it."""
        if self.transport.is_closing() or self._discarding is not None:
            return False
        if self._in_head:
            return self.cycle is None or self.cycle.response_complete
        return self._in_body and not self.pipeline and not self.cycle.response_started

    def give_way(self, error: NotNow) -> None:
        """Answer with an error; where another answer is due first, end the connection."""
        if self.pipeline or (self.cycle is not None and self.cycle.response_started and not self._in_head):
            self.abort()
        else:
            self._refuse(error)

    def abort(self) -> None:
        """End the connection, whatever the client has not yet read."""
        self.transport.abort()

    def _refuse(self, error: ThreadlineError) -> None:
        self._deadline = math.inf
        if self.transport.is_closing() or self._discarding is not None:
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # The application is to end its work at this request, as if the client had gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.pipeline.clear()
        answer = problem(error, "", self._address())
        headers = [f"{name}: {value}" for name, value in (*answer.headers.items(), ("connection", "close"))]
        head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", *headers, "", ""]
        self.transport.write("\r\n".join(head).encode("latin-1") + bytes(answer.body))
        self._discard()

    def _address(self) -> str:
        """The address under which the server was asked, as far as the head has come: it may have ended early."""
        given = dict(reversed([*(self.headers or ()), *self._former_headers]))
        scheme = forwarded_scheme(given.get(b"x-forwarded-proto", b"").decode("latin-1"), self.scheme or "http")
        if (named := given.get(b"host")) and limits.HOST.fullmatch(named):
            return f"{scheme}://{named.decode('latin-1')}"
        host, port = self.server or ("localhost", 0)
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def _finish(self) -> None:
        """The last answer of the connection is written."""
        if self._in_head or (self._in_body and not self.pipeline):
            self._discard()
        else:
            self._close()

    def _discard(self) -> None:
        """Send nothing more, and drop what comes, until the client has closed or its time is over."""
        self._discarding = 0
        self._share.finish()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._wait(limits.EXTRA_SECONDS_MAX if self._is_extra else limits.DISCARD_SECONDS_MAX)

    def _close(self) -> None:
        """Close when the client has taken all, or when its time for it is over."""
        if self.transport.is_closing():
            return
        self.transport.close()
        if self._taking is None and self.transport.get_write_buffer_size():
            self._taking = self.loop.call_later(self._take_seconds(), self.abort)

    def _take_seconds(self) -> float:
        return limits.TAKE_SECONDS + self.transport.get_write_buffer_size() / limits.TAKE_BYTES_PER_SECOND

    def on_response_complete(self) -> None:
        """One request is answered. Of those that follow it nothing has come, or the last piece at most."""
        if self._discarding is None and self._in_body and not self.pipeline:
            self._discard()  # as `_finish` does where the answer has told the client to close
        if self._discarding is not None:
            self.server_state.total_requests += 1
            return
        if not self.flow.write_paused:
            self._share.taken()
            if not self.pipeline:
                self._share.rest()
        self._share.answered(self._last_bytes if self.pipeline or self._in_head or self._in_body else 0)
        super().on_response_complete()

    timeout_keep_alive_handler = _close

    def shutdown(self) -> None:
        """The server stops: what is under way is answered, a client that has just connected is waited for a moment."""
        if self._discarding is not None or self._in_head or self.cycle is None:
            self._wait(limits.FRESH_SECONDS_MAX)
        elif self.cycle.response_complete:
            self._close()
        else:
            self.cycle.keep_alive = False


class Server(uvicorn.Server):
    """Says once that it listens, and stops so that no client notices who goes by its readiness."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        stop_signals: list[int],
        in_flight: InFlight,
        drain_seconds: float,
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._stop_signals = stop_signals
        self._in_flight = in_flight
        self._drain_seconds = drain_seconds
        self._is_announced = self._hurries = False
        self.failure: Exception | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so. If that fails, end in good order and keep why."""
        await super().startup(sockets)
        if self._stop_signals:
            self.should_exit = True  # before uvicorn listened to signals
        if not self.started or self.should_exit:
            return
        try:
            self._ready()
            self._is_announced = True
        except Exception as error:  # noqa: BLE001 — it is raised again once the server has ended
            self.failure, self.should_exit = error, True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop at the first signal; at the second one wait for nobody to go elsewhere, at the third for none.

        Ctrl-C comes from somebody who waits for the end, and in front of whom no balancer stands.
        """
        again = self.should_exit
        super().handle_exit(sig, frame)
        if self._in_flight.is_ending and sig == signal.SIGTERM:
            for connection in list(self.server_state.connections):
                connection.loop.call_soon_threadsafe(connection.transport.abort)
        self._hurries = self._hurries or again or sig != signal.SIGTERM

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve for a while as one that is not ready, accept who has connected, close, let requests in flight end."""
        self._in_flight.is_draining = True
        until = time.monotonic() + (self._drain_seconds if self._is_announced else 0)
        while not self._hurries and time.monotonic() < until:
            await self.on_tick(0)  # or the header Date stands still
            await asyncio.sleep(0.05)
        self._in_flight.is_ending = True
        for listening in sockets or ():
            await accept_the_last(listening)
        await super().shutdown(sockets)


def config(application: Reloadable, settings: Settings, in_flight: InFlight) -> uvicorn.Config:
    """How uvicorn is to serve an application."""
    return uvicorn.Config(
        application,
        loop="uvloop" if find_spec("uvloop") else "asyncio",  # not there on every platform
        http=partial(Connection, in_flight=in_flight),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,  # what it says is logged in the form that the process has chosen
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # the application reads them itself, so that it does the same on every server
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        backlog=limits.BACKLOG,
    )
