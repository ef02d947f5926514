"""Runs the application on uvicorn in one process, with the dispatcher beside it, until it is told to stop."""

from __future__ import annotations

import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable

import uvicorn

from threadline.engine.dispatch import Dispatcher
from threadline.engine.engine import Engine
from threadline.settings import Settings
from threadline.surfaces.http.application import Application
from threadline.surfaces.http.connection import Connection
from threadline.surfaces.http.rate import SharedLimits
from threadline.surfaces.working import keep_working

BACKLOG = 2_048


def serve(
    engine: Engine,
    settings: Settings,
    ready: Callable[[str], None],
    dispatcher: Dispatcher | None = None,
    limits: SharedLimits | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT: then requests in flight are answered, and everything taken is committed.

    ``ready`` is told the address once the server listens. Raises `OSError` if it cannot. The engine stays open.
    """
    # The writer must get the interpreter back soon after each call into SQLite, or commits crawl beside a busy loop.
    before = sys.getswitchinterval()
    sys.setswitchinterval(settings.switch_interval_seconds)
    listening = _listen(settings.host, settings.port)
    stopping = threading.Event()
    working = _start(dispatcher, stopping)
    _keep_signals()
    # What is loaded by now stays: leaving it out of every later collection keeps pauses short.
    gc.collect()
    gc.freeze()
    try:
        config = uvicorn.Config(
            Application(engine, settings, limits=limits),
            loop="uvloop" if _has_uvloop() else "asyncio",
            http=Connection,
            ws="none",
            lifespan="on",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,  # the application reads them itself, so that it does the same on every server
            timeout_keep_alive=settings.keep_alive_seconds,
            timeout_graceful_shutdown=settings.shutdown_seconds,
            backlog=BACKLOG,
        )
        _Announcing(config, lambda: ready(_address(listening))).run(sockets=[listening])
    finally:
        stopping.set()
        if working is not None:
            working.join()
        listening.close()
        gc.unfreeze()
        sys.setswitchinterval(before)


class _Announcing(uvicorn.Server):
    """Says once that it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def _keep_signals() -> None:
    # uvicorn raises the signal that ended it once more when it is done. By its usual meaning that would end the
    # process before the store is closed.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)


def _start(dispatcher: Dispatcher | None, stopping: threading.Event) -> threading.Thread | None:
    if dispatcher is None:
        return None
    thread = threading.Thread(target=keep_working, args=(dispatcher, stopping), name="threadline-dispatch", daemon=True)
    thread.start()
    return thread


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except BaseException:
        listening.close()
        raise
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401 — not there on every platform
    except ImportError:
        return False
    return True
