"""An issuer of web tokens for tests: real keys, and an HTTP server on this machine that publishes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwk, jwt

SECRET = "a secret that is longer than thirty-two bytes"
_KEYS: dict[str, Any] = {}


def key(algorithm: str, kid: str = "first") -> Any:
    """A key of an algorithm; the same for the same name, because making one of RSA takes a while."""
    if algorithm == "HS256":
        return jwk.OctKey.import_key(SECRET)
    name = f"{algorithm} {kid}"
    if name not in _KEYS:
        parameters: Any = {"kid": kid}
        _KEYS[name] = (
            jwk.RSAKey.generate_key(2_048, parameters)
            if algorithm == "RS256"
            else jwk.ECKey.generate_key("P-256", parameters)
        )
    return _KEYS[name]


def token(claims: dict[str, Any], algorithm: str = "HS256", kid: str = "first", *, names_key: bool = True) -> str:
    """A token that this issuer signed; with ``names_key`` it says with which key."""
    header = {"alg": algorithm} | ({"kid": kid} if names_key else {})
    return jwt.encode(header, claims, key(algorithm, kid), [algorithm])


def published(*names: tuple[str, str]) -> bytes:
    """The JWKS with the public halves of these keys."""
    return json.dumps({"keys": [key(*name).as_dict(private=False) for name in names]}).encode()


class Issuer:
    """What a server publishes now, and how often it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.body: bytes | None = b'{"keys": []}'
        """None: it answers 500."""
        self.asked = 0


@contextmanager
def issuer() -> Iterator[Issuer]:
    """A server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked += 1
            self.send_response(200 if made.body is not None else 500)
            self.end_headers()
            self.wfile.write(made.body or b"")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Issuer(f"http://127.0.0.1:{server.server_port}/jwks.json")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
