"""Runs the application on uvicorn in one process, with the dispatcher beside it, until it is told to stop."""

from __future__ import annotations

import errno
import math
import re
import signal
import socket
import sys
import threading
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidSetting, ThreadlineError
from threadline.settings import Settings
from threadline.surfaces.composition import SharedLimits
from threadline.surfaces.http.application import Application
from threadline.surfaces.http.counts import counts_from_zero
from threadline.surfaces.http.problem import BodyTooSlow, HeadTooLarge, HeadTooSlow, MalformedRequest, problem
from threadline.surfaces.http.reloading import Generation, Reloadable
from threadline.surfaces.http.stepped_collector import SteppedCollector
from threadline.surfaces.worker_process import at_hang_up

BACKLOG = 2_048
HEAD_BYTES_MAX = 64 * 1_024
"""Of a head that comes in several pieces; what comes at once is bounded by what is read at once."""
HEAD_SECONDS_MAX = 20.0
BODY_SECONDS_MAX = 120.0
"""Whoever sends a byte now and then, after the answer too, would otherwise hold a connection for ever."""
_HOST = re.compile(rb"(?:\[[0-9A-Za-z:.%~_-]*\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
"""A host and a port, as RFC 9110, 7.2, has them; it may be empty."""


def serve(
    engine: Engine,
    settings: Settings,
    listening: socket.socket,
    ready: Callable[[str], None],
    dispatcher: Dispatcher | None = None,
    limits: SharedLimits | None = None,
    reopen: Callable[[Engine], tuple[Engine, Dispatcher]] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or the terminal's end: then requests in flight are answered, and what was taken is
    committed.

    ``listening`` comes from `bound` and is closed at the end. ``ready`` is told the address once the server answers;
    what it raises ends the server and is raised here. The engine stays open. ``reopen`` gives, at SIGHUP and by the
    operation `definitions_reload`, the engine of the definitions as they are then, on the same store.
    """
    # The writer must get the interpreter back soon after each call into SQLite, or commits crawl beside a busy loop.
    before = sys.getswitchinterval()
    sys.setswitchinterval(settings.switch_interval_seconds)
    told_to_stop = _keep_signals()
    generations: Reloadable | None = None
    try:
        with SteppedCollector() as collector:
            counts = counts_from_zero(settings, engine.clock)

            def generation(engine: Engine, dispatcher: Dispatcher | None) -> Generation:
                made = Application(engine, settings, limits=limits, after_request=collector.step, counts=counts)
                return Generation(made, dispatcher)

            renew = None if reopen is None else lambda old: generation(*reopen(old))
            generations = Reloadable(generation(engine, dispatcher), renew)
            generations.start()
            server = _Announcing(_config(generations, settings), lambda: ready(_address(listening)), told_to_stop)
            if threading.current_thread() is threading.main_thread():
                at_hang_up(server.handle_exit, None if reopen is None else generations.reload_at_signal)
            server.run(sockets=[listening])
        if server.failure is not None:
            raise server.failure
    finally:
        if generations is not None:
            generations.stop()
        listening.close()
        sys.setswitchinterval(before)


def _config(application: Reloadable, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        loop="uvloop" if _has_uvloop() else "asyncio",
        http=Connection,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,  # what it says is logged in the form that the process has chosen
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # the application reads them itself, so that it does the same on every server
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        backlog=BACKLOG,
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address where nobody else listens; `serve` listens on it. Raises `InvalidSetting`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except BaseException as error:
        listening.close()
        if isinstance(error, OSError):
            raise _not_bound(host, port, error) from None
        raise
    return listening


def _not_bound(host: str, port: int, error: OSError) -> InvalidSetting:
    if error.errno == errno.EADDRINUSE:
        hint = "choose another with --port or THREADLINE_PORT"
        return InvalidSetting(f"{_shown(host, port)} is already in use; {hint}")
    hint = "choose with --host and --port, or THREADLINE_HOST and THREADLINE_PORT"
    return InvalidSetting(f"cannot listen at {_shown(host, port)}: {error.strerror}; {hint}")


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
        while True:
            try:
                super().feed_data(data)
                return
            except httptools.HttpParserUpgrade as offered:
                if self.get_method() == b"CONNECT":
                    raise httptools.HttpParserInvalidMethodError("this is no proxy") from None
                data = self._connection.head_without_offer() + data[offered.args[0] :]


class Connection(HttpToolsProtocol):
    """Takes requests off a socket, and hangs up on those that have no end: uvicorn has no bounds for it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.parser = _Parser(self)
        self._in_head = self._in_body = False
        self._head_bytes = 0
        self._fault = "this is not an HTTP/1.1 request"
        self._deadline = math.inf
        """When what is waited for must have come, by the loop's clock; infinite while the application is at work."""
        self._timer: TimerHandle | None = None
        self._looks_at = math.inf

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request, but not for ever; for those that follow there is a time-out already."""
        super().connection_made(transport)
        self._wait(HEAD_SECONDS_MAX)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
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
        if self._deadline == math.inf:
            self._wait(HEAD_SECONDS_MAX)

    def head_without_offer(self) -> bytes:
        """The head that has been read, but for the offer of another protocol."""
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

    def on_headers_complete(self) -> None:
        """It has ended, and a body begins, which may be empty."""
        if self.parser.should_upgrade():
            return
        self._check_host()
        self._in_head = False
        super().on_headers_complete()
        self._in_body = True
        self._wait(BODY_SECONDS_MAX)

    def on_message_complete(self) -> None:
        """The body has ended."""
        if self.parser.should_upgrade():
            return
        self._in_body, self._deadline = False, math.inf
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Tell what is no HTTP so, as a problem like any other."""
        self._refuse(MalformedRequest(self._fault))

    def _check_host(self) -> None:
        """Refuse what RFC 9112, 3.2, has refused: else a proxy in front may go by another host than we do."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if not hosts and self.parser.get_http_version() == "1.0":
            return
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            self._fault = "a request of HTTP/1.1 has one header Host, which names a host"
            raise httptools.HttpParserError(self._fault)

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
        if self._in_head:
            self._refuse(HeadTooSlow(f"a request's head has {HEAD_SECONDS_MAX:g} seconds to come"))
        elif self._in_body and self.pipeline:
            self._wait(BODY_SECONDS_MAX)  # nothing more of it is read before what came earlier is answered
        elif self._in_body and not self.cycle.response_started:
            self._refuse(BodyTooSlow(f"a request's body has {BODY_SECONDS_MAX:g} seconds to come"))
        else:
            # Browsers open connections ahead of need, and would take any word for the answer to what they ask next.
            self.transport.close()

    def _refuse(self, error: ThreadlineError) -> None:
        self._deadline = math.inf
        if self.transport.is_closing():
            return
        host, port = self.server or ("localhost", 0)
        answer = problem(error, "", f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        headers = [f"{name}: {value}" for name, value in (*answer.headers.items(), ("connection", "close"))]
        head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", *headers, "", ""]
        self.transport.write("\r\n".join(head).encode("latin-1") + bytes(answer.body))
        self.transport.close()


class _Announcing(uvicorn.Server):
    """Says once that it listens; if that fails, it ends in good order and keeps why."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], told_to_stop: list[int]) -> None:
        super().__init__(config)
        self._ready = ready
        self._told_to_stop = told_to_stop
        self.failure: Exception | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._told_to_stop:
            self.should_exit = True  # before uvicorn listened to signals
        if not self.started or self.should_exit:
            return
        try:
            self._ready()
        except Exception as error:  # noqa: BLE001 — it is raised again once the server has ended
            self.failure, self.should_exit = error, True


def _keep_signals() -> list[int]:
    """The signals to stop that came since, but for those that came while uvicorn listened to them itself."""
    # uvicorn raises the signal that ended it once more when it is done. By its usual meaning that would end the
    # process before the store is closed.
    told: list[int] = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: told.append(number))
    return told


def own_address(listening: socket.socket) -> str:
    """The address of a server that only this machine reaches; empty for one that others reach by a name."""
    return _address(listening) if ip_address(listening.getsockname()[0]).is_loopback else ""


def _address(listening: socket.socket) -> str:
    return "http://" + _shown(*listening.getsockname()[:2])


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401 — not there on every platform
    except ImportError:
        return False
    return True
