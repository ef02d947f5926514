"""Hostile requests through a real socket to a real server, which goes on serving and says of nothing that it failed."""

from __future__ import annotations

import gzip
import json
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import psutil
import pytest

from tests.clients.server import Server
from tests.surfaces.test_fuzz import REFUSED
from threadline.kernel.limits import REQUEST_BYTES_MAX

pytestmark = pytest.mark.client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("fuzz") / "threadline.db")
    made.start()
    yield made
    assert "Traceback" not in made.log()
    made.stop()


def track(key: str, user: str = "ada") -> dict[str, Any]:
    return {"type": "track", "userId": user, "event": "click", "messageId": key}


def post(server: Server, body: bytes, path: str = "/v1/batch", **headers: str) -> httpx.Response:
    return httpx.post(server.url + path, content=body, headers=headers, auth=(server.write_key, ""), timeout=60)


def batch(*messages: bytes) -> bytes:
    return b'{"batch":[' + b",".join(messages) + b"]}"


def keys(server: Server, user: str) -> list[str]:
    return [event["key"] for event in server.events(f"user_id:{user}")]


def say(server: Server, *parts: bytes, hang_up: bool = False, more_seconds: float = 30) -> bytes:
    """Send raw bytes; gives back all that is answered until the server closes or has nothing more to say."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        answer = b""
        # It may close, or wait for more, before it was told everything.
        with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            for part in parts:
                connection.sendall(part)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65_536):
                answer += piece
                connection.settimeout(more_seconds)
        return answer


def head(server: Server, *lines: str, path: str = "/v1/batch") -> bytes:
    secret = b64encode(f"{server.write_key}:".encode()).decode()
    first = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Basic {secret}", "Connection: close"]
    return ("\r\n".join([*first, *lines]) + "\r\n\r\n").encode("latin-1")


def test_every_bad_message_is_refused_and_every_neighbour_recorded(server: Server) -> None:
    good = [json.dumps(track(f"g{n}", "neighbour")).encode() for n in range(len(REFUSED) + 1)]
    messages = [good[0]]
    for (raw, _), neighbour in zip(REFUSED.values(), good[1:], strict=True):
        messages += [raw, neighbour]
    answer = post(server, batch(*messages))
    assert answer.status_code == 200
    assert [each["code"] for each in answer.json()["rejected"]] == [code for _, code in REFUSED.values()]
    assert sorted(keys(server, "neighbour")) == sorted(f"g{n}" for n in range(len(good)))


def test_two_thousand_messages_with_bad_ones_among_them(server: Server) -> None:
    messages = [json.dumps(track(f"m{n}", "crowd")) if n % 10 else '{"bad":NaN}' for n in range(2_000)]
    answer = post(server, batch(*(message.encode() for message in messages)))
    assert answer.status_code == 200
    outcome = answer.json()
    assert (outcome["accepted"], len(outcome["rejected"])) == (1_800, 200)
    assert [each["index"] for each in outcome["rejected"]] == [*range(0, 2_000, 10)]
    assert len(keys(server, "crowd")) == 1_800


def test_a_bomb_costs_neither_memory_nor_the_time_of_others(server: Server) -> None:
    (process,) = [each for each in psutil.process_iter() if _listens(each, server.port)]
    bomb = gzip.compress(bytes(1_000 * REQUEST_BYTES_MAX // 4), 9)
    assert len(bomb) < REQUEST_BYTES_MAX
    before = process.memory_info().rss
    began = time.monotonic()
    for _ in range(3):
        assert post(server, bomb, **{"Content-Encoding": "gzip"}).status_code == 413
        assert process.memory_info().rss - before < 10 * REQUEST_BYTES_MAX
    assert time.monotonic() - began < 60
    assert post(server, batch(json.dumps(track("after", "bomb")).encode())).json()["accepted"] == 1


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        return any(each.laddr.port == port and each.status == "LISTEN" for each in process.net_connections("tcp"))
    except psutil.Error:
        return False


NO_REQUESTS = {
    "a TLS handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "NUL": (b"\0" * 1_000, 400),
    "no address": (b"POST\r\n\r\n", 400),
    "HTTP/9.9": (b"GET / HTTP/9.9\r\n\r\n", 400),
    "an address of no UTF-8": (b"GET /%00%ff%c0%af HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "an address of raw bytes": (b"GET /v1/people/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a length below nothing": (b"POST /v1/t HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}", 400),
    "a length of twenty digits": (
        b"POST /v1/t HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
        400,
    ),
    "two lengths": (
        b"POST /v1/t HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "a chunk of no length": (b"POST /v1/t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", 400),
    "a key of raw bytes": (
        b"POST /v1/t HTTP/1.1\r\nHost: x\r\nAuthorization: Basic \xff\xfe\r\nContent-Length: 2\r\n\r\n{}",
        401,
    ),
    "a star": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
}
"""What it is -> (what is sent, the status of the answer)."""


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_what_is_no_request_is_no_fault_of_the_server(name: str, server: Server) -> None:
    said, status = NO_REQUESTS[name]
    assert say(server, said, more_seconds=0.2).startswith(b"HTTP/1.1 %d " % status)
    assert server.get("/readyz").status_code == 200


def test_a_body_that_ends_too_early_records_nothing(server: Server) -> None:
    body = batch(json.dumps(track("early", "hasty")).encode())
    assert say(server, head(server, f"Content-Length: {len(body) + 1}"), body, hang_up=True) == b""
    assert (
        say(server, head(server, "Transfer-Encoding: chunked"), b"%x\r\n" % (len(body) + 1), body, hang_up=True) == b""
    )
    assert keys(server, "hasty") == []


def test_a_body_in_many_small_pieces_is_one_body(server: Server) -> None:
    body = batch(json.dumps(track("pieces", "slow")).encode())
    pieces = [b"1\r\n%c\r\n" % byte for byte in body]
    answer = say(server, head(server, "Transfer-Encoding: chunked"), *pieces, b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert keys(server, "slow") == ["pieces"]
