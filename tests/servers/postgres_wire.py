"""A wire to a PostgreSQL server that can be cut at the worst instant of one request."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

Cut = Literal["before", "after", "late"]
_READY = b"Z\0\0\0\5"
"""ReadyForQuery, which ends each answer; the state of the transaction follows as one byte."""


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
        assert self.delivered.wait(60)

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
            ready = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, ready), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, client, ready), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, ready: threading.Event) -> None:
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
                    ready.clear()
                    server.sendall(data)
                    ready.wait(30)
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


def _pass_on(server: socket.socket, client: socket.socket, ready: threading.Event) -> None:
    """Until the server hangs up, also when the client has: what comes for it then is lost."""
    last = b""
    with suppress(OSError):
        while data := server.recv(1 << 20):
            with suppress(OSError):
                client.sendall(data)
            last = (last + data)[-len(_READY) - 1 :]
            if last.startswith(_READY):
                ready.set()
    ready.set()
    _shut(client)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
