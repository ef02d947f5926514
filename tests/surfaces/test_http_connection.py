"""A connection's bounds: heads without an end, heads that never come, and those that are only unusual."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from threadline.surfaces.http.server import connection_limits
from threadline.surfaces.http.server.connection import Connection
from threadline.surfaces.http.server.connection_limits import HEAD_BYTES_MAX

Say = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]
REQUEST = b"GET /x HTTP/1.1\r\nHost: here\r\n"


async def answering(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, and say how large it and the head were."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    told = json.dumps([sum(len(value) for _, value in scope["headers"]), len(body)]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(told))]})
    await send({"type": "http.response.body", "body": told})


def saying(say: Say) -> Any:
    """What comes of a conversation with a server."""

    async def run() -> Any:
        config = Config(answering, http=Connection, log_level="critical")
        made = lambda: Connection(config=config, server_state=ServerState(), app_state={})  # noqa: E731
        server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            return await asyncio.wait_for(say(reader, writer), 20)
        finally:
            writer.close()
            server.close()

    return asyncio.run(run())


@contextmanager
def patience(seconds: float, monkeypatch: pytest.MonkeyPatch, body: float | None = None) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(connection_limits, "HEAD_SECONDS_MAX", seconds)
        if body is not None:
            patched.setattr(connection_limits, "BODY_SECONDS_MAX", body)
        yield


async def piecewise(writer: asyncio.StreamWriter, pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", ["one header", "many headers", "address"])
def test_a_head_without_an_end_is_cut_off(kind: str) -> None:
    first, piece = {
        "one header": (REQUEST + b"x-long: ", b"a" * 4_096),
        "many headers": (REQUEST, b"x-many: " + b"a" * 1_000 + b"\r\n"),
        "address": (b"GET /", b"a" * 4_096),
    }[kind]

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        async def for_ever() -> None:
            writer.write(first)
            for _ in range(100 * HEAD_BYTES_MAX // len(piece)):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)

        told = asyncio.create_task(for_ever())
        answer = await reader.read(100)
        told.cancel()
        return answer

    assert saying(say).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_a_large_head_is_read_and_so_is_what_follows_a_large_body() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[Any]:
        async def answer() -> Any:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return json.loads(await reader.readexactly(length))

        large = b"x-large: " + b"a" * (HEAD_BYTES_MAX - 1_000) + b"\r\n"
        await piecewise(writer, iter([REQUEST[:7], REQUEST[7:], large[:30_000], large[30_000:], b"\r\n"]))
        found = [await answer()]
        # The second request's head comes with the end of the first one's body, and ends a little later.
        body = b"b" * 300_000
        writer.write(b"POST /x HTTP/1.1\r\nHost: here\r\nContent-Length: 300000\r\n\r\n" + body + REQUEST[:9])
        await piecewise(writer, iter([REQUEST[9:], b"\r\n"]))
        return [*found, await answer(), await answer()]

    [(large, _), (_, body), (small, nothing)] = saying(say)
    assert (large, body, small, nothing) == (HEAD_BYTES_MAX - 1_000 + 4, 300_000, 4, 0)


@pytest.mark.parametrize("sent", [b"", REQUEST, REQUEST + b"x-slow: "], ids=["nothing", "no end", "half a header"])
def test_a_head_that_never_comes_is_not_waited_for(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(sent)
        return await reader.read()

    with patience(0.2, monkeypatch):
        answer = saying(say)
    if not sent:
        assert answer == b""
    else:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert json.loads(body)["code"] == "head_too_slow"


def test_a_body_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST /x HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nab")
        await asyncio.sleep(0.5)
        writer.write(b"cd")
        return await reader.readuntil(b", 4]")

    with patience(0.2, monkeypatch):
        assert saying(say).endswith(b"[5, 4]")


BODY = b"POST /x HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nab"


def problem_of(answer: bytes) -> tuple[bytes, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    return head.partition(b"\r\n")[0], json.loads(body)["code"]


def test_a_body_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(BODY)
        return await reader.read()

    with patience(20, monkeypatch, body=0.2):
        assert problem_of(saying(say)) == (b"HTTP/1.1 408 Request Timeout", "body_too_slow")


def test_nor_is_one_that_drips_after_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answering_at_once(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"no"})

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        async def drip() -> None:
            for _ in range(10_000):
                writer.write(b"c")
                await asyncio.sleep(0.02)

        writer.write(BODY.replace(b"100", b"100000"))
        dripping = asyncio.create_task(drip())
        answer = await reader.read()  # until the server hangs up
        dripping.cancel()
        return answer

    monkeypatch.setitem(globals(), "answering", answering_at_once)
    with patience(20, monkeypatch, body=0.2):
        assert saying(say).endswith(b"\r\n\r\nno")


def test_what_follows_a_body_in_time_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(BODY + b"c" * 98)
        first = await reader.readuntil(b"100]")
        await asyncio.sleep(0.5)
        writer.write(REQUEST + b"\r\n")
        return first + await reader.readuntil(b", 0]")

    with patience(20, monkeypatch, body=0.2):
        assert saying(say).count(b"HTTP/1.1 200 OK") == 2


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
HEAD = b"POST /x HTTP/1.1\r\nHost: here\r\n"


@pytest.mark.parametrize("pieces", [1, 7, 1_000], ids=["at once", "in pieces", "byte by byte"])
@pytest.mark.parametrize(
    "length", [b"Content-Length: 4\r\n\r\nabcd", b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"]
)
def test_who_offers_another_protocol_loses_no_body(length: bytes, pieces: int) -> None:
    sent = (HEAD + OFFER + length) * 2 + REQUEST + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n" + HEAD + length

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[Any]:
        size = -(-len(sent) // pieces)
        await piecewise(writer, (sent[at : at + size] for at in range(0, len(sent), size)))
        return [await reader.readuntil(b"]") for _ in range(4)]

    answers = saying(say)
    assert all(answer.startswith(b"HTTP/1.1 200 OK\r\n") for answer in answers)
    assert [json.loads(answer.rpartition(b"\r\n")[2])[1] for answer in answers] == [4, 4, 0, 4]


@pytest.mark.parametrize(
    "sent",
    [
        b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n",
        b"FOO /x HTTP/1.1\r\nHost: here\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: here\r\n\r\n",
        b"GET /x HTTP/3.0\r\nHost: here\r\n\r\n",
        b"POST /x HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET /x HTTP/1.1\r\n\r\n",
        b"POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd",
        b"GET /x HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: here\r\nHost: here\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: here there\r\n\r\n",
        b"GET /x HTTP/1.0\r\nHost: here\r\nHost: there\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
    ],
    ids=[
        "proxy",
        "method",
        "address",
        "version",
        "two lengths",
        "TLS",
        "no host",
        "no host but a body",
        "no host and an offer",
        "two hosts",
        "no name of a host",
        "two hosts of 1.0",
        "packed chunks",
        "one length twice",
    ],
)
def test_what_is_no_http_is_told_so_as_a_problem(sent: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(sent)
        return await reader.read()

    assert problem_of(saying(say)) == (b"HTTP/1.1 400 Bad Request", "malformed_request")


BEHIND = b"POST /x HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Proto: https\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        BEHIND + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        BEHIND + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n",
        BEHIND + b"a:b\r\n" * 255 + b"\r\n",
        BEHIND + b"a: b\r\nno header\r\n\r\n",
        BEHIND + b"Content-Length: 0\r\n\r\nno request\r\n\r\n",
    ],
    ids=["packed chunks", "two lengths", "too many headers", "no header", "no request after one"],
)
def test_a_refusal_before_any_address_is_looked_at_names_the_address_that_the_client_wrote(sent: bytes) -> None:
    # Behind a proxy that ends TLS the type of such an error began with http and the server's own host and port.
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(sent)
        return await reader.read()

    problem = json.loads(saying(say).rpartition(b"\r\n\r\n")[2])
    assert problem["type"] == f"https://shop.example/docs#error-{problem['code']}"


def test_a_refusal_of_a_connection_without_a_head_names_the_address_of_the_server() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"no request\r\n\r\n")
        return await reader.read()

    problem = json.loads(saying(say).rpartition(b"\r\n\r\n")[2])
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/docs#error-malformed_request", problem["type"])


@pytest.mark.parametrize(("headers", "status"), [(255, b"200 OK"), (256, b"431 Request Header Fields Too Large")])
def test_a_head_has_a_bounded_number_of_headers(headers: int, status: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET /x HTTP/1.1\r\nHost: here\r\n" + b"a:b\r\n" * headers + b"\r\n")
        return await reader.readline()

    assert saying(say) == b"HTTP/1.1 " + status + b"\r\n"


def test_headers_that_follow_the_body_are_dropped() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        trailers = b"Authorization: Bearer x\r\n" * 1_000
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n" + trailers + b"\r\n")
        return await reader.readuntil(b"]")

    assert saying(say).endswith(b"[%d, 4]" % len("herechunked"))


@pytest.mark.parametrize(
    "head",
    [
        b"1.0\r\n",
        b"1.0\r\nHost: here\r\n",
        b"1.1\r\nHost:\r\n",
        b"1.1\r\nhOST: [::1%25eth0]:8787\r\n",
        b"1.1\r\nHost: a_b.example:80\r\n",
        b"1.1\r\nHost: 192.0.2.1\r\nX-Host: other\r\n",
    ],
)
def test_a_host_may_be_any_and_of_1_0_none(head: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET /x HTTP/" + head + b"Connection: close\r\n\r\n")
        return await reader.read()

    assert saying(say).startswith(b"HTTP/1.1 200 OK")
