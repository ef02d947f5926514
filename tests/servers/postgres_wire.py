"""A wire to a PostgreSQL server that can be cut at the worst instant of one request."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

Cut = Literal["before", "after", "late"]


class Wire:
    """Passes bytes on between clients and a server's socket, until it is told to cut at a request.

    ``before``: the request does not reach the server. ``after``: it does, and its answer is lost. ``late``: the client
    is cut off first, and the server gets the request only when `deliver` is called.
    """

    def __init__(self, server: Path, folder: Path) -> None:
        self._server = server / ".s.PGSQL.5432"
        self._plan: list[tuple[Cut, bytes]] = []
        self._late = threading.Event()
        self.delivered = threading.Event()
        """Set when the server has answered what was delivered late."""
        self.cuts = 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, when: Cut, containing: bytes = b"apply_1") -> None:
        """Cut at the next request that holds these bytes; of several cuts one after the other."""
        self._plan.append((when, containing))

    def deliver(self) -> None:
        """Let the server have what was kept from it, and wait until it has dealt with it."""
        self._late.set()
        assert self.delivered.wait(10)

    def close(self) -> None:
        """Take no more clients."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 20):
                if not self._plan or self._plan[0][1] not in data:
                    server.sendall(data)
                    continue
                cut, _ = self._plan.pop(0)
                self.cuts += 1
                # Whatever is left of the request; it waits in the socket, for the client sends it all at once.
                data += _rest(client)
                _shut(client)
                if cut == "late":
                    self._late.wait(30)
                if cut != "before":
                    server.sendall(data)
                    _drain(server)
                    self.delivered.set()
                _shut(server)
                return
        except OSError:
            pass
        _shut(server)


def _rest(client: socket.socket) -> bytes:
    client.settimeout(0.2)
    rest = b""
    try:
        while data := client.recv(1 << 20):
            rest += data
    except TimeoutError:
        pass
    return rest


def _drain(server: socket.socket) -> None:
    # The thread that passes answers on may take them as well; ReadyForQuery or silence ends the wait.
    server.settimeout(0.5)
    try:
        while server.recv(1 << 20):
            pass
    except (TimeoutError, OSError):
        pass


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 20):
            target.sendall(data)
    except OSError:
        pass
    _shut(target)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
