"""A network between a client and the server that loses what it is told to lose, and keeps a copy of the rest."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

REFUSE = "refuse"
"""Answer 503, as the server does when it cannot write; nothing reaches it."""
LOSE = "lose"
"""Let the request through and lose the answer: the client cannot know that all is recorded."""
RESET = "reset"
"""Break the connection before anything reaches the server."""
STRIKE = "strike"
"""Let the request through, and let the network's ``strike`` happen before an answer can come back."""
PASS = "pass"

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "date", "server"}
_PROBLEM = {"title": "The store cannot answer now", "status": 503, "code": "unavailable", "message": "not now"}


class Taken(NamedTuple):
    """A request as a client sent it, and what was done to it."""

    fate: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as the client meant it."""
        packed = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)


class Network:
    """Listens on a port of its own and forwards to the server, but for the fates that are planned."""

    def __init__(self, port: int, strike: Callable[[], None] = lambda: None) -> None:
        self.strike = strike
        self.struck = threading.Semaphore(0)
        """Counts the strikes that have happened."""
        self.taken: list[Taken] = []
        self.answered: set[str] = set()
        """The ids of the messages of which the client was told what became of them."""
        self._fates: deque[str] = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, port))
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def plan(self, fates: Iterable[str]) -> None:
        """What will be done to the next POST requests; those after them pass."""
        self._fates.extend(fates)

    def fate(self) -> str:
        """What will be done to this request."""
        try:
            return self._fates.popleft()
        except IndexError:
            return PASS

    def close(self) -> None:
        """Listen no longer."""
        self._server.shutdown()
        self._server.server_close()


def _handler(network: Network, port: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            fate = network.fate()
            headers = {name.lower(): value for name, value in self.headers.items()}
            taken = Taken(fate, self.path, headers, body)
            network.taken.append(taken)
            if fate == RESET:
                self._break()
            elif fate == REFUSE:
                told = {"retry-after": "1", "access-control-allow-origin": "*", "content-type": "application/json"}
                self._answer(
                    503, told | {"access-control-expose-headers": "retry-after"}, json.dumps(_PROBLEM).encode()
                )
            else:
                self._forward(body, lose=fate in (LOSE, STRIKE), strike=fate == STRIKE)
                if fate == PASS and not self.close_connection:
                    said = taken.json()
                    network.answered.update(each["messageId"] for each in said.get("batch", [said]))

        def do_OPTIONS(self) -> None:
            self._forward(b"", lose=False)

        def _forward(self, body: bytes, *, lose: bool, strike: bool = False) -> None:
            onward = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            try:
                onward.request(self.command, self.path, body, headers)
                if strike:
                    network.strike()
                    network.struck.release()
                answer = onward.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self._break()
                return
            finally:
                onward.close()
            if lose:
                self._break()
                return
            kept = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
            self._answer(answer.status, kept, content)

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name != "content-length":
                    self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _break(self) -> None:
            # Zero seconds of lingering make the closing a reset, which no client can take for an answer.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True

    return Handler
