"""Connections to one service that the settings name: they stay open, and what nobody answered is sent again."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

FAILURES = (OSError, HTTPException)
"""What an exchange raises to which there is no answer."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: HTTPMessage
    content: bytes


class Connections:
    """The connections to one origin. Thread-safe: each exchange has one for itself."""

    def __init__(
        self, origin: str, *, connect_seconds: float, answer_seconds: float, tls: ssl.SSLContext | None = None
    ) -> None:
        """``origin`` has http:// or https:// and a host. Raises `ValueError` for one that cannot be read."""
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port
        self._answer_seconds = answer_seconds
        self._connect: Callable[[], HTTPConnection]
        if parts.scheme == "https":
            tls = tls or ssl.create_default_context()
            self._connect = lambda: HTTPSConnection(host, port, timeout=connect_seconds, context=tls)
        else:
            self._connect = lambda: HTTPConnection(host, port, timeout=connect_seconds)
        self._idle: deque[HTTPConnection] = deque()

    def exchange(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """A request and its answer, whatever its status. Raises one of `FAILURES` if there is none."""
        while True:
            try:
                connection, used = self._idle.pop(), True
            except IndexError:
                connection, used = self._opened(), False
            try:
                return self._exchange_on(connection, method, path, headers, body)
            except FAILURES as error:
                connection.close()
                # A server closes connections that were idle for long: that says nothing about the next one.
                if not used or isinstance(error, TimeoutError):
                    raise
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _opened(self) -> HTTPConnection:
        connection = self._connect()
        connection.connect()
        connection.sock.settimeout(self._answer_seconds)
        return connection

    def _exchange_on(
        self, connection: HTTPConnection, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        content = response.read()
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return Answer(response.status, response.headers, content)


def repeated(
    once: Callable[[], Answer], is_passing: Callable[[Answer], bool], attempts_max: int, pause: Callable[[int], None]
) -> Answer:
    """The answer to a request that may be made several times: the first that is not ``is_passing``, or the last.

    ``pause`` waits before the next attempt, and is handed how many were made. Raises what the last attempt raises.
    """
    attempt = 1
    while True:
        try:
            answer = once()
        except FAILURES:
            if attempt == attempts_max:
                raise
        else:
            if attempt == attempts_max or not is_passing(answer):
                return answer
        pause(attempt)
        attempt += 1
