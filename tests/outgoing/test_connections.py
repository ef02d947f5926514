"""Connections that stay open: one that was closed while idle costs nothing, and what passes is asked again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPMessage

import pytest

from threadline.outgoing.connections import FAILURES, Answer, Connections, repeated

WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def serving(*connections: int) -> Iterator[str]:
    """A server that takes so many connections, and closes each after it has given this many answers."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answers in connections:
            connection, _ = listening.accept()
            with connection:
                for _ in range(answers):
                    connection.recv(65_536)
                    connection.sendall(WELL)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(60)


def test_a_connection_that_the_service_has_closed_while_idle_is_replaced() -> None:
    with serving(2, 1) as origin:
        connections = Connections(origin, connect_seconds=60, answer_seconds=60)
        asked = [connections.exchange("GET", "/", {}, None).content for _ in range(3)]
        connections.close()
    assert asked == [b"ok"] * 3


def test_a_new_connection_that_is_closed_without_an_answer_is_a_failure() -> None:
    with serving(0) as origin, pytest.raises(FAILURES):
        Connections(origin, connect_seconds=60, answer_seconds=60).exchange("GET", "/", {}, None)


@pytest.mark.parametrize(
    ("statuses", "result", "pauses"),
    [([200], 200, []), ([503, 200], 200, [1]), ([503, 503, 503], 503, [1, 2]), ([0, 404], 404, [1])],
)
def test_what_passes_is_asked_again_and_the_last_answer_counts(
    statuses: list[int], result: int, pauses: list[int]
) -> None:
    left, paused = list(statuses), list[int]()

    def once() -> Answer:
        status = left.pop(0)
        if not status:
            raise ConnectionResetError("nothing came back")
        return Answer(status, HTTPMessage(), b"")

    assert repeated(once, lambda answer: answer.status == 503, 3, paused.append).status == result
    assert (left, paused) == ([], pauses)


def test_a_failure_of_the_last_attempt_is_raised() -> None:
    def once() -> Answer:
        raise ConnectionResetError("nothing came back")

    with pytest.raises(ConnectionResetError):
        repeated(once, lambda answer: False, 2, lambda attempt: None)
