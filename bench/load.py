"""A load generator: prebuilt requests over kept-alive connections, as fast as answered or at a steady rate.

It burns far less than the server does, because nothing is built, parsed or allocated while it runs.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench.contest import Tape
from threadline.testing.world import World, segment_message

_ENCODE = msgspec.json.Encoder().encode


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Requests to send over so many connections, each connection one at a time."""

    name: str
    requests: list[bytes]
    connections: int = 1
    rate: float = 0.0
    """Requests per second over all connections; 0: each as soon as the one before is answered."""
    loop: bool = False
    """Begin anew when the requests are used up, which only reads may."""


@dataclass
class Measured:
    """What came back."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    """From the instant at which a request was due to the last byte of its answer."""
    statuses: Counter[int] = field(default_factory=Counter)
    bodies: list[bytes] = field(default_factory=list)

    def add(self, more: Measured) -> None:
        """Count another stretch in."""
        self.seconds += more.seconds
        self.latencies_ms += more.latencies_ms
        self.statuses += more.statuses
        self.bodies += more.bodies

    @property
    def answered(self) -> int:
        """Requests answered with success."""
        return sum(count for status, count in self.statuses.items() if 200 <= status < 300)

    @property
    def failed(self) -> int:
        """Requests answered otherwise, or not at all (status 0)."""
        return self.statuses.total() - self.answered


def post(path: str, body: bytes, write_key: str) -> bytes:
    """The bytes of a request with Segment's Basic authentication."""
    credential = b64encode(f"{write_key}:".encode()).decode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic {credential}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(path: str, token: str) -> bytes:
    """The bytes of a read with a bearer token."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def batch_requests(world: World, start: int, count: int, size: int, write_key: str) -> list[bytes]:
    """Events [start, start + count) of a world as requests of Segment's ``/v1/batch``."""
    tape = Tape(world)
    tape.skip_to(start)
    return [
        post("/v1/batch", _ENCODE({"batch": [segment_message(event) for event in batch]}), write_key)
        for batch in tape.batches(count, size)
    ]


def single_requests(world: World, start: int, count: int, write_key: str) -> list[bytes]:
    """The same, each event in a request of its own."""
    tape = Tape(world)
    tape.skip_to(start)
    messages = [segment_message(event) for (event,) in tape.batches(count, 1)]
    return [post(f"/v1/{message['type']}", _ENCODE(message), write_key) for message in messages]


class _Connection(asyncio.Protocol):
    """One kept-alive connection that has at most one request under way."""

    def __init__(self) -> None:
        self._answer = asyncio.get_running_loop().create_future()
        self._received = bytearray()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_size = self._received.find(b"\r\n\r\n") + 4
        if head_size < 4:
            return
        head = bytes(self._received[:head_size]).lower()
        at = head.find(b"content-length:")
        assert at > 0, f"an answer without a length: {head!r}"
        size = int(head[at + 15 : head.index(b"\r\n", at)])
        if len(self._received) >= head_size + size and not self._answer.done():
            self._answer.set_result((int(head[9:12]), bytes(self._received[head_size : head_size + size])))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send one request; its status and body."""
        self._received.clear()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        answer: tuple[int, bytes] = await self._answer
        return answer

    def close(self) -> None:
        """Hang up."""
        if not self._answer.done():
            self._answer.cancel()
        self._transport.close()


async def _worker(port: int, load: Load, number: int, stop_at: float, measured: Measured) -> None:
    """One connection: every ``connections``-th request from its own number on."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(_Connection, "127.0.0.1", port)
    requests, at, turn, started_at = load.requests, number, 0, time.perf_counter()
    spacing = load.connections / load.rate if load.rate else 0.0
    while at < len(requests):
        now = time.perf_counter()
        due_at = now
        if spacing:
            # Late answers do not shift what is due: a stall is counted for every request it kept waiting.
            due_at = started_at + (turn + number / load.connections) * spacing
            if due_at > now:
                await asyncio.sleep(due_at - now)
        if max(now, due_at) >= stop_at:
            break
        try:
            status, body = await connection.ask(requests[at])
        except OSError:
            measured.statuses[0] += 1
            break
        measured.latencies_ms.append((time.perf_counter() - due_at) * 1_000)
        measured.statuses[status] += 1
        measured.bodies.append(body)
        turn += 1
        at += load.connections
        if load.loop:
            at %= len(requests)
    connection.close()


async def _drive(port: int, loads: Sequence[Load], seconds: float) -> dict[str, Measured]:
    measured = {load.name: Measured() for load in loads}
    started_at = time.perf_counter()

    async def one(load: Load) -> None:
        stop_at = started_at + seconds
        await asyncio.gather(*(_worker(port, load, n, stop_at, measured[load.name]) for n in range(load.connections)))
        measured[load.name].seconds = time.perf_counter() - started_at

    await asyncio.gather(*(one(load) for load in loads))
    return measured


def drive(port: int, loads: Sequence[Load], seconds: float) -> dict[str, Measured]:
    """Put these loads on a server at once for so many seconds. Call it in a process of its own (`in_child`)."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_drive(port, loads, seconds))
