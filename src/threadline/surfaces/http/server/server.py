"""Runs the application on uvicorn in one process, with the dispatcher beside it, until it is told to stop."""

from __future__ import annotations

import errno
import signal
import socket
import sys
import threading
from collections.abc import Callable
from ipaddress import ip_address

from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.interpreter import SteppedCollector
from threadline.kernel.errors import InvalidSetting
from threadline.settings import Settings
from threadline.surfaces.by_hand import look_seconds
from threadline.surfaces.composition import SharedLimits
from threadline.surfaces.http.addresses.counts import Counts, counts_from_zero
from threadline.surfaces.http.answers.descriptors import raise_limit, room
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.http.server.connection import Server, config
from threadline.surfaces.http.server.reloading import Checker, Generation, Reloadable
from threadline.surfaces.worker_process import at_hang_up


def serve(
    engine: Engine,
    settings: Settings,
    listening: socket.socket,
    ready: Callable[[str], None],
    dispatcher: Dispatcher | None = None,
    limits: SharedLimits | None = None,
    reopen: Callable[[Engine], tuple[Engine, Dispatcher]] | None = None,
    checker: Checker | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or the terminal's end: then requests in flight are answered, and what was taken is
    committed.

    ``listening`` comes from `bound` and is closed at the end. ``ready`` is told the address once the server answers;
    what it raises ends the server and is raised here. The engine stays open. ``reopen`` gives, at SIGHUP and by the
    operation `definitions_reload`, the engine of the definitions as they are then, on the same store. ``checker`` says
    whether what would be made by hand goes with them, for `definitions_declare`.
    """
    # The writer must get the interpreter back soon after each call into SQLite, or commits crawl beside a busy loop.
    before = sys.getswitchinterval()
    sys.setswitchinterval(settings.switch_interval_seconds)
    stop_signals = _keep_signals()
    space = room(raise_limit(), settings.clients_max)
    generations: Reloadable | None = None
    counts: Counts | None = None
    try:
        with SteppedCollector() as collector:
            counts = counts_from_zero(settings, engine.clock, space)

            def generation(engine: Engine, dispatcher: Dispatcher | None) -> Generation:
                made = Application(engine, settings, limits=limits, after_request=collector.step, counts=counts)
                return Generation(made, dispatcher)

            renew = None if reopen is None else lambda old: generation(*reopen(old))
            generations = Reloadable(generation(engine, dispatcher), renew, checker, look_seconds(settings))
            generations.start()
            settled = config(generations, settings, counts.in_flight)
            announce = lambda: ready(_address(listening))  # noqa: E731
            server = Server(settled, announce, stop_signals, counts.in_flight, settings.drain_seconds)
            if threading.current_thread() is threading.main_thread():
                at_hang_up(server.handle_exit, None if reopen is None else generations.reload_at_signal)
            server.run(sockets=[listening])
        if server.failure is not None:
            raise server.failure
    finally:
        if generations is not None:
            generations.stop()
        if counts is not None:
            counts.uploads.close()
        listening.close()
        sys.setswitchinterval(before)


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


def _keep_signals() -> list[int]:
    """The signals to stop that came since, but for those that came while uvicorn listened to them itself."""
    # uvicorn raises the signal that ended it once more when it is done. By its usual meaning that would end the
    # process before the store is closed.
    signals: list[int] = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: signals.append(number))
    return signals


def own_address(listening: socket.socket) -> str:
    """The address of a server that only this machine reaches; empty for one that others reach by a name."""
    return _address(listening) if ip_address(listening.getsockname()[0]).is_loopback else ""


def _address(listening: socket.socket) -> str:
    return "http://" + _shown(*listening.getsockname()[:2])


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
