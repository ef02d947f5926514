"""What is fetched: public addresses over TLS only, as much as is asked for, and nothing behind a redirect."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from threadline.kernel.errors import Unavailable
from threadline.outgoing.allowed_addresses import read_networks
from threadline.outgoing.public_call import HttpCaller
from threadline.senders.web import Web

ANSWERS = {"/ok": (200, b"x" * 5_000), "/gone": (404, b"gone"), "/moved": (302, b"moved")}


class _Handler(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012 — the server makes a handler for each request

    def do_GET(self) -> None:
        """Answer, with a redirect to a secret where that is asked for."""
        self.asked.append(self.path)
        status, body = ANSWERS.get(self.path, (200, b"secret"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "/secret")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """A server of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://127.0.0.1/x", "not public"),
        ("https://[::1]/x", "not public"),
        ("https://10.0.0.1/x", "not public"),
        ("https://169.254.169.254/latest", "not public"),
        ("http://example.com/x", "no TLS"),
        ("file:///etc/passwd", "https"),
        ("https://user@example.com/", "password"),
        ("https://sns.example.invalid/x", "looked up"),
    ],
)
def test_only_public_addresses_over_tls_are_fetched(url: str, why: str) -> None:
    with pytest.raises(Unavailable, match=why):
        Web().get(url, 100)


def test_get_reads_as_much_as_is_asked_for_and_follows_nothing(address: str) -> None:
    caller = HttpCaller(read_networks("127.0.0.1/32"), plain=True)
    assert caller.get(f"{address}/ok", 10, 100).body == b"x" * 100
    assert caller.get(f"{address}/gone", 10, 100)[::2] == (404, b"gone")
    assert caller.get(f"{address}/moved", 10, 100).status == 302
    assert "/secret" not in _Handler.asked
