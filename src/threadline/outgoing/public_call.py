"""One request to a public address, within a time limit; private addresses are refused."""

from __future__ import annotations

import io
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from threadline.outgoing.allowed_addresses import Network, Refused, check_address

ANSWER_BYTES_MAX = 2_000
"""What is read of the body of an answer."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_INTERIM = frozenset(range(100, 200)) - {HTTPStatus.SWITCHING_PROTOCOLS}
"""Answers that another one follows."""


class Failed(Exception):
    """No valid answer came in time."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    retry_after: str
    body: bytes
    """Its beginning, of an answer that is not a success; of a success as far as somebody wants it."""


class HttpCaller:
    """Calls out. Thread-safe. Every call has a connection of its own, to an address that was looked at."""

    def __init__(
        self, networks: Sequence[Network] = (), *, plain: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        self._networks = networks
        self._plain = plain
        self._tls = tls

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout_seconds: float,
        bytes_max: int = 0,
    ) -> Answer:
        """Send a request and read the answer, in all within the timeout, the look-up of the name apart.

        Redirects are answers like any other: they are not followed. ``bytes_max`` is what is read of the body of a
        success. Raises `Refused` and `Failed`.
        """
        return self._call(method, url, headers, body, timeout_seconds, bytes_max)

    def get(self, url: str, timeout_seconds: float, bytes_max: int) -> Answer:
        """The same as a GET, without headers of its own."""
        return self._call("GET", url, {}, b"", timeout_seconds, bytes_max)

    def _call(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_seconds: float, bytes_max: int
    ) -> Answer:
        parts, host, port = self._parts(url)
        if any(_CONTROLS.search(f"{name}{value}") for name, value in headers.items()):
            raise Refused("a header has a line break or another control character")
        addresses = self._addresses(host, port)
        deadline = time.monotonic() + timeout_seconds
        try:
            with (
                self._connected(addresses, deadline) as plain,
                self._secured(plain, parts, host, deadline) as connection,
            ):
                connection.settimeout(_left(deadline))
                connection.sendall(_head(method, parts, host, port, headers, len(body)) + body)
                return _answer(connection, deadline, method, bytes_max)
        except (OSError, HTTPException, UnicodeError) as error:
            raise Failed(f"{type(error).__name__}: {error}"[:300]) from None

    def _parts(self, url: str) -> tuple[SplitResult, str, int]:
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except (ValueError, UnicodeError) as error:
            raise Refused(f"the address cannot be read: {error}") from None
        if parts.scheme not in ("https", "http") or not host or "@" in parts.netloc:
            raise Refused("an address has https://, a host and no password")
        if parts.scheme == "http" and not self._plain:
            raise Refused("the address has no TLS; the setting webhook_http would allow that")
        return parts, host, port

    def _addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, Any]]:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Failed(f"the name {host} cannot be looked up: {error}") from None
        # One private address refuses all: a DNS server must not choose which one is called.
        for _, _, _, _, address in infos:
            check_address(str(address[0]), self._networks)
        return [(family, address) for family, _, _, _, address in infos]

    def _connected(self, addresses: Sequence[tuple[socket.AddressFamily, Any]], deadline: float) -> socket.socket:
        last: OSError = TimeoutError("the name has no address")
        for family, address in addresses:
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(_left(deadline))
                connection.connect(address)
                # The checked and the connected address are the same by construction; this makes sure.
                check_address(str(connection.getpeername()[0]), self._networks)
            except OSError as error:
                connection.close()
                last = error
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise last

    def _secured(self, connection: socket.socket, parts: SplitResult, host: str, deadline: float) -> socket.socket:
        if parts.scheme == "http":
            return connection
        if self._tls is None:  # made when it is needed: reading the machine's certificates takes a while
            self._tls = ssl.create_default_context()
        connection.settimeout(_left(deadline))  # connecting has taken some of it
        return self._tls.wrap_socket(connection, server_hostname=host)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def _head(method: str, parts: SplitResult, host: str, port: int, headers: Mapping[str, str], length: int) -> bytes:
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    usual = {"https": 443, "http": 80}[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    lines = [f"{method} {target} HTTP/1.1", f"Host: {shown if port == usual else f'{shown}:{port}'}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {length}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("utf-8", "replace")


class _Timed(io.RawIOBase):
    """The bytes of an answer, each wait cut at the deadline of the whole: a slow trickle wins no time."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As many bytes as are there."""
        self._connection.settimeout(_left(self._deadline))
        return self._connection.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What `HTTPResponse` asks a socket for."""
        return io.BufferedReader(self)


class _Response(HTTPResponse):
    """Of an answer that has others before it, such as 103 Early Hints, the last one."""

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        # What reads over 100 Continue, in the standard library, does so for all that are taken for it.
        return version, HTTPStatus.CONTINUE if status in _INTERIM else status, reason


def _answer(connection: socket.socket, deadline: float, method: str, bytes_max: int) -> Answer:
    with _Response(_Timed(connection, deadline), method=method) as response:  # type: ignore[arg-type]
        response.begin()
        body = b""
        if bytes_max and 200 <= response.status < 300:
            body = response.read(bytes_max)
        elif not 200 <= response.status < 300:
            try:
                body = response.read(max(bytes_max, ANSWER_BYTES_MAX))
            except (OSError, HTTPException):
                body = b""  # the status says enough
        return Answer(response.status, response.getheader("Retry-After", ""), body)
