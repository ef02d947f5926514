"""A receiver of webhooks on this machine, and a verifier of signatures that shares no code with what signs."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass
class Call:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"


Answer = tuple[int, dict[str, str], bytes]
OK: Answer = (204, {}, b"")


class Receiver:
    """Answers as it is told, and remembers what came."""

    def __init__(self, answer: Callable[[Call], Answer] = lambda call: OK, raw: bytes = b"") -> None:
        self.calls: list[Call] = []
        self.answer = answer
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def answered(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                call = Call(self.path, headers, body, self.command)
                receiver.calls.append(call)
                status, headers, answer = receiver.answer(call)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_PUT = do_PATCH = do_GET = do_DELETE = answered  # noqa: N815 — names of the standard library

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]

    def url(self, path: str = "/hooks", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def __enter__(self) -> Receiver:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, type: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.server.shutdown()
        self.server.server_close()


def is_signed(call: Call, secret: str) -> bool:
    """Whether one of the signatures is that of a secret ``whsec_…``: HMAC-SHA256 by RFC 2104, written out."""
    key = base64.b64decode(secret[len("whsec_") :])
    key = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    message = call.headers["webhook-id"].encode() + b"." + call.headers["webhook-timestamp"].encode() + b"." + call.body
    inner = hashlib.sha256(bytes(each ^ 0x36 for each in key) + message).digest()
    outer = hashlib.sha256(bytes(each ^ 0x5C for each in key) + inner).digest()
    wanted = b"v1," + base64.b64encode(outer)
    return wanted in call.headers["webhook-signature"].encode().split(b" ")
